"""PostgreSQL comes back without its newest commits, which the bus has: a failover to a standby that was behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import psycopg
import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import view_pb2
from gouji.ranking.v1.facts_pb2 import RatingChanged
from prometheus_client import CollectorRegistry
from psycopg_pool import AsyncConnectionPool
from pydantic import SecretStr
from typer.testing import CliRunner, Result

from engine.runtime import heads, postgres, subjects
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.lifecycle import Lifecycle
from engine.service import outbox
from engine.store.postgres import PostgresEventStore
from services.cli.main import app
from services.ranking import wire
from services.ranking.main import start_ranking
from services.ranking.rebuild import rebuild
from services.ranking.settings import RankingSettings
from tests.fixtures.schemas import migrated
from tests.support.engine_bench import Callers, Replica, accepted, eventually, start
from tests.support.engine_site import EngineSite

pytestmark = pytest.mark.timeout(240)

RATINGS = "select player_id, mu, sigma, deals, matches from rating order by player_id"


@dataclass
class Ranking:
    """The ranking service on a database of its own or on the engine's."""

    dsn: str
    pool: AsyncConnectionPool
    registry: CollectorRegistry

    async def ratings(self) -> list[tuple[object, ...]]:
        """All of them, as soon as the database answers."""
        while True:
            with suppress(psycopg.OperationalError):
                async with self.pool.connection() as connection:
                    return await (await connection.execute(RATINGS)).fetchall()

    async def has(self, deals: int, matches: int) -> bool:
        """Whether so much is counted for each of the six."""
        return {row[3:] for row in await self.ratings()} == {(deals, matches)}

    async def counts(self, what: str, number: int) -> bool:
        """Whether so many sources are `forked` or `behind`."""
        return self.registry.get_sample_value(f"gouji_ranking_intake_{what}_sources") == number


@dataclass
class Town:
    """The servers, an engine on them, and what an operator has at hand."""

    site: EngineSite
    replica: Replica
    bus: NatsBus

    async def table(self, deals: int) -> Callers:
        callers = Callers(self.bus, patience_s=60)
        await callers.open_with_six(deals=deals)
        return callers

    async def nothing_waits(self) -> bool:
        return self.replica.value("gouji_engine_outbox_pending") == 0

    async def gouji(self, *words: str, dsn: str = "") -> Result:
        """Run an operator's command."""
        env = {
            "GOUJI_POSTGRES_DSN": self.site.dsn,
            "GOUJI_OWNER_DSN": dsn,
            "GOUJI_NATS_SERVERS": self.site.nats.address,
            "GOUJI_NATS_USER": "operator",
            "GOUJI_NATS_PASSWORD": self.site.nats.password("operator"),
        }
        return await asyncio.to_thread(partial(CliRunner().invoke, app, words, env=env))


@pytest.fixture
async def town(site: EngineSite, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Town]:
    monkeypatch.setattr(outbox, "_PARKED_S", 1.0)
    monkeypatch.setattr(heads, "EVERY_S", 0.5)
    store = await PostgresEventStore.open(site.dsn, must_last=True)
    bus = await NatsBus.connect(NatsOptions((site.nats.url(),)))
    replica = await start(store, bus)
    yield Town(site, replica, bus)
    await replica.stop()
    await bus.close()
    await store.close()


@pytest.fixture(params=["ranking keeps its own", "ranking goes back too"])
def ranking_dsn(request: pytest.FixtureRequest, site: EngineSite) -> str:
    if request.param == "ranking goes back too":
        return site.dsn
    dsn = str(request.getfixturevalue("empty_database"))
    migrated(dsn, "ranking")
    return dsn


@asynccontextmanager
async def ranking_on(dsn: str, bus: NatsBus) -> AsyncIterator[Ranking]:
    settings = RankingSettings(postgres_dsn=SecretStr(dsn), nats_servers="nats://unused", token_public_keys="unused")
    life, registry = Lifecycle(), CollectorRegistry()
    async with postgres.pool(dsn, "ranking") as pool:
        await start_ranking(life, pool, bus, settings, registry)
        yield Ranking(dsn, pool, registry)
        await life._stop_all()


async def deal(callers: Callers) -> None:
    await callers.all_ready()
    await callers.play()


async def close(callers: Callers) -> None:
    accepted(await callers.send("admin", house=engine.House(kind=engine.House.KIND_CLOSE, reason="late")))


async def test_commits_that_are_lost_while_the_bus_has_them_raise_the_alarm_and_are_settled_as_documented(
    town: Town, ranking_dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ranking_on(ranking_dsn, town.bus) as ranking:
        match, closed = await town.table(deals=2), await town.table(deals=1)
        await deal(match)
        await eventually(lambda: ranking.has(1, 0))
        await eventually(town.nothing_waits)
        await asyncio.to_thread(town.site.keep_copy)

        lost = await town.table(deals=1)
        await deal(match)
        await deal(lost)
        await close(closed)
        await eventually(lambda: ranking.has(3, 2))
        await eventually(lambda: _has_taken(ranking, closed, 2))
        await asyncio.to_thread(town.site.go_back)
        before = await ranking.ratings()
        if ranking_dsn == town.site.dsn:
            await eventually(lambda: ranking.counts("behind", 3))

        await deal(match)
        assert await match.is_in(view_pb2.TABLE_PHASE_FINISHED)
        accepted(await closed.send("anna", set_ready=engine.SetReady(ready=True)))
        await close(closed)
        await close(sound := await town.table(deals=1))
        await eventually(lambda: _counts(town, forks=2, pending=3))
        assert await town.bus.last_fact(subjects.fact(sound.table_id)) is not None
        assert "facts parked" in capsys.readouterr().out
        assert await ranking.ratings() == before

        checked = await town.gouji("bus", "check")
        assert checked.exit_code == 1
        found = [_verdict(checked, table) for table in (match, closed, lost, sound)]
        assert found == ["fork", "fork", "surplus", ""]
        assert (await town.gouji("bus", "rebuild", "--anew")).exit_code == 0
        await eventually(lambda: _counts(town, forks=0, pending=0))
        if ranking_dsn != town.site.dsn:
            await eventually(lambda: ranking.counts("forked", 2))
            assert await ranking.ratings() == before
    assert (await town.gouji("ratings", "--from-stream", dsn=ranking_dsn)).exit_code == 0

    async with ranking_on(ranking_dsn, town.bus) as ranking:
        await eventually(lambda: ranking.has(2, 1))
        await eventually(lambda: ranking.counts("behind", 0))
        assert await ranking.counts("forked", 0)
        await eventually(lambda: _is_told(town.bus, ranking))
        assert (await rebuild(ranking.pool, wire.entry_from_fact)).mended == 0
    whole = await town.gouji("bus", "check")
    assert whole.exit_code == 0
    assert "tables 3, told 0, whole 3" in whole.stdout


def _verdict(checked: Result, table: Callers) -> str:
    """What a check found of a table; services of this process may have logged in between."""
    words = (line.split() for line in checked.stdout.splitlines() if line.startswith(str(table.table_id)))
    return next((verdict for _, verdict, *_ in words), "")


async def _counts(town: Town, *, forks: int, pending: int) -> bool:
    found = (town.replica.value("gouji_engine_bus_forks"), town.replica.value("gouji_engine_outbox_pending"))
    return found == (forks, pending)


async def _has_taken(ranking: Ranking, table: Callers, position: int) -> bool:
    async with ranking.pool.connection() as connection:
        query = "select last from inbox where source = %s"
        row = await (await connection.execute(query, (subjects.fact(table.table_id),))).fetchone()
    return row == (position,)


async def _is_told(bus: NatsBus, ranking: Ranking) -> bool:
    """Whether the newest that the bus has of each player is how he stands."""
    for player, mu, sigma, *_ in await ranking.ratings():
        last = await bus.last_fact(subjects.rating(str(player)))
        told = RatingChanged.FromString(last.payload if last else b"")
        if (told.mu, told.sigma) != (mu, sigma):
            return False
    return True
