"""The database is away for longer than any turn, whole installation, players and all: nobody runs out of time for it.

Law: `GOUJI_OUTAGE_S` says how long it is away, seconds, in every way; without it two ways do, and ten seconds. Every turn
and window is shorter. What was measured is printed.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from engine import match
from engine.match import WaitKind
from engine.service import codec
from engine.service.standing import Standing, advanced
from tests.chaos.harness import gathering
from tests.chaos.harness.checker import violations
from tests.chaos.harness.clients import Book, dial
from tests.chaos.harness.evidence import Evidence, Kind, Logged, Truth
from tests.chaos.harness.site import ENGINES, SETTINGS, TABLES, Site
from tests.chaos.harness.thinking import Party
from tests.support.engine_bench import eventually

OUTAGE_S = float(os.environ.get("GOUJI_OUTAGE_S", "10"))
WAYS = [("killed", "restarted"), ("black-holed", "staying")]
"""How the database is away, and what the engines do meanwhile."""
if "GOUJI_OUTAGE_S" in os.environ:
    WAYS += [("killed", "staying"), ("black-holed", "restarted")]
WAIT_MS = 8_000
"""A turn, and a window."""
SOON_S = 30.0
STILL_S = 0.4
"""In which everybody at a table has made up his mind."""
MOVES = 20
VARIANT = "qingdao-charter"
DEALS = 3
EXTENDED = "deadline_extended"

pytestmark = pytest.mark.timeout(300 + 2 * OUTAGE_S)


@pytest.fixture
async def site(folder: Path) -> AsyncIterator[Site]:
    spans = {"GOUJI_TURN_MS": str(WAIT_MS), "GOUJI_WINDOW_MS": str(WAIT_MS), "GOUJI_BETWEEN_MS": "60000"}
    async with Site(folder, settings={**SETTINGS, **spans}) as site:
        await site.start()
        yield site


@dataclass(frozen=True)
class House:
    """Three tables of a site: all six are `asked`, one has the `turn`, and the third is `busy` playing."""

    site: Site
    book: Book
    asked: Party
    turn: Party
    busy: Party

    @property
    def parties(self) -> Sequence[Party]:
        return self.asked, self.turn, self.busy

    async def rest(self) -> None:
        """Bring every table to its wait."""
        for party in self.parties:
            await party.sit(VARIANT, DEALS)
            await party.wait_for(6, SOON_S)
        self.busy.gate.open()
        await one_is_to_act(self.turn)
        await self.asked.gate.let_through()
        await self.asked.wait_for(6, SOON_S)

    async def resumes(self, party: Party) -> None:
        """Let players go on as soon as the time of their table is extended."""

        async def is_extended() -> bool:
            found = "select exists (select from engine.event where table_id = %s and type = %s)"
            with psycopg.connect(self.site.dsn) as owner:
                return owner.execute(found, (party.table_id, EXTENDED)).fetchone() == (True,)

        await eventually(is_extended, SOON_S)
        party.gate.open()

    async def judged(self) -> Evidence:
        """Stop the engines, so that no deadline passes that players who leave would miss; then everything is compared."""
        for engine in ENGINES:
            await self.site.end(engine)
        for party in self.parties:
            await party.leave()
        await gathering.settle(self.site.dsn, self.site.bus_url, SOON_S, with_engines=False)
        evidence = await gathering.evidence(self.site.dsn, self.site.bus_url, self.book)
        assert violations(evidence) == []
        assert self.site.outcries() == []
        return evidence


@pytest.fixture
async def house(site: Site) -> AsyncIterator[House]:
    async with AsyncExitStack() as opened:
        book, parties = Book(), []
        for name in ("asked", "turn", "busy"):
            channels = [dial(site.address(service)) for service in TABLES]
            for channel in channels:
                opened.push_async_callback(channel.close)
            parties.append(Party(name, channels, site.token, book))
            opened.push_async_callback(parties[-1].leave)
        yield House(site, book, *parties)


async def one_is_to_act(party: Party) -> None:
    """Let everybody through who has something to send, until that is one player, whose turn it is."""
    while True:
        await party.gate.let_through()
        await asyncio.sleep(STILL_S)
        if party.gate.waiting == 1:
            return


def is_away(site: Site, how: str) -> Callable[[], Awaitable[None]]:
    """Take the database away; what is returned brings it back."""

    async def start_again() -> None:
        await site.revive("postgres")

    async def carry_on() -> None:
        for link in site.targets.database_links:
            site.proxies[link].release()

    if how == "killed":
        site.postgres.kill()
        return start_again
    for link in site.targets.database_links:
        site.proxies[link].swallow()
    return carry_on


async def pass_the_time(site: Site, engines: str) -> None:
    """Wait for the end of the outage; both engines are started anew in the middle of it, or not."""
    await asyncio.sleep(OUTAGE_S / 2)
    if engines == "restarted":
        for engine in ENGINES:
            await site.kill(engine)
            await site.revive(engine)
    await asyncio.sleep(OUTAGE_S / 2)


def wait_before(log: Sequence[Logged], version: int) -> match.Waiting | None:
    """What a table waited for when this event came."""
    standing = Standing()
    for stored, _ in log[: version - 1]:
        standing = advanced(standing, codec.decode(stored.type, stored.schema, stored.payload))
    return match.waiting(standing.match)


def extensions(truth: Truth) -> list[int]:
    """The versions at which a table's time was extended."""
    return [row.event.version for row in truth.log if row.event.type == EXTENDED]


def seen_by(evidence: Evidence, table_id: UUID, version: int) -> set[str]:
    """Which clients were shown this event."""
    pages = (page for page in evidence.seen if page.table_id == table_id)
    return {page.player for page in pages if any(m.kind is Kind.EVENT and m.version == version for m in page.marks)}


def told(party: Party, truth: Truth, back_at_ms: int) -> None:
    """Print how long it took after the database was back."""
    extended = [row.event.at_ms - back_at_ms for row in truth.log if row.event.type == EXTENDED]
    acted = next(
        row.event.at_ms - back_at_ms
        for row in truth.log
        if row.event.at_ms > back_at_ms and row.event.actor.startswith(party.name)
    )
    print(f"\n{party.name}: extended after {extended} ms, first action after {acted} ms")  # noqa: T201 - to be read


@pytest.mark.parametrize(("how", "engines"), WAYS)
async def test_nobody_runs_out_of_time_while_the_database_is_away(house: House, how: str, engines: str) -> None:
    await house.rest()
    begun_at = gathering.open_tables(house.site.dsn)

    bring_back = is_away(house.site, how)
    await pass_the_time(house.site, engines)
    back_at_ms = time.time_ns() // 1_000_000
    await bring_back()
    await asyncio.gather(house.resumes(house.asked), house.resumes(house.turn))
    await asyncio.gather(*(party.go_on(MOVES, SOON_S) for party in house.parties))

    evidence = await house.judged()
    for party, waited_for in ((house.asked, WaitKind.WINDOW), (house.turn, WaitKind.TURN)):
        truth = evidence.truths[party.table_id]
        first, *more = extensions(truth)
        wait = wait_before(truth.log, first)
        assert wait is not None
        assert wait.kind is waited_for
        assert wait.since not in [again.since for version in more if (again := wait_before(truth.log, version))]
        assert len(seen_by(evidence, party.table_id, first)) == 7
    for party in house.parties:
        told(party, evidence.truths[party.table_id], back_at_ms)
        timeouts = evidence.truths[party.table_id].timeouts
        assert [timeout for timeout in timeouts if timeout.version > begun_at[party.table_id]] == []
