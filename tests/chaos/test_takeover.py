"""Tables in the middle of their deals when one of two engines ends: how long until each answers again, to whom it must.

Law: players ask as the table service does, with its own client and its patience; what is measured is printed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import median
from uuid import uuid4

import psycopg
import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import action_pb2

from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.faults import DeadlineExceeded, Unavailable
from engine.store.port import SHARDS, shard_of
from services.table.engine_client import EngineClient
from tests.support.engine_bench import Callers, eventually
from tests.support.engine_site import EngineSite

pytestmark = pytest.mark.timeout(240)

TABLES = 200
DEFAULT_LEASES = {"GOUJI_LEASE_TTL_MS": "6000", "GOUJI_LEASE_RENEW_MS": "2000", "GOUJI_SWEEP_MS": "1000"}
PATIENT = {"GOUJI_TURN_MS": "120000", "GOUJI_WINDOW_MS": "120000"}


@dataclass(frozen=True)
class Turn:
    """What somebody at a table is about to do."""

    callers: Callers
    player: str
    action: action_pb2.Action

    @property
    def shard(self) -> int:
        return shard_of(self.callers.table_id)


@dataclass(frozen=True)
class Answer:
    """What came of it: how long after the end of the engine and after the player called, and with how many calls."""

    shard: int
    after_s: float
    waited_s: float
    calls: int


@pytest.fixture
async def bus(site: EngineSite) -> AsyncIterator[NatsBus]:
    bus = await NatsBus.connect(NatsOptions((site.nats.url(),)))
    yield bus
    await bus.close()


async def owners(site: EngineSite) -> dict[int, str]:
    """Who leads each shard."""
    async with await psycopg.AsyncConnection.connect(site.dsn) as connection:
        cursor = await connection.execute("select shard, owner from engine.lease where until > now()")
        return dict(await cursor.fetchall())


async def shared_evenly(site: EngineSite) -> None:
    """Wait until both engines lead half of the shards."""

    async def is_even() -> bool:
        held = list((await owners(site)).values())
        return sorted(held.count(owner) for owner in set(held)) == [SHARDS // 2, SHARDS // 2]

    await eventually(is_even, within=30)


async def about_to_act(bus: NatsBus) -> Turn:
    """A table in the middle of its deal, and somebody there who may act."""
    callers = Callers(bus, patience_s=60)
    await callers.open_with_six()
    await callers.all_ready()
    await callers.play(8)
    turn = await callers._whose_turn()
    assert turn is not None
    return Turn(callers, *turn)


async def tables_in_play(bus: NatsBus, number: int) -> Sequence[Turn]:
    """So many tables, a few at a time."""
    places = asyncio.Semaphore(12)

    async def one() -> Turn:
        async with places:
            return await about_to_act(bus)

    return await asyncio.gather(*(one() for _ in range(number)))


async def answered(client: EngineClient, turn: Turn, pause_s: float, ended: float) -> Answer:
    """Act after a pause, and call again with the same command when the table service gives up."""
    await asyncio.sleep(pause_s)
    called = time.monotonic()
    command = engine.CommandRequest(
        table_id=str(turn.callers.table_id),
        command_id=str(uuid4()),
        caller=engine.Caller(player_id=turn.player, role="player"),
        act=engine.Act(action=turn.action),
    )
    for calls in count(1):
        try:
            outcome = await client.command(command)
        except (Unavailable, DeadlineExceeded):
            continue
        assert outcome.HasField("accepted"), outcome
        now = time.monotonic()
        return Answer(turn.shard, now - ended, now - called, calls)
    raise AssertionError


async def measured(
    site: EngineSite, bus: NatsBus, end: Callable[[], None], within_s: float
) -> tuple[list[Answer], list[Answer]]:
    """Everybody acts within this time of an engine's end: the answers at tables that changed hands, and at the others."""
    turns = await tables_in_play(bus, TABLES)
    before = await owners(site)
    client = EngineClient(bus)
    ended = time.monotonic()
    end()
    pauses = (within_s * number / len(turns) for number in range(len(turns)))
    answers = await asyncio.gather(*(answered(client, *one, ended) for one in zip(turns, pauses, strict=True)))
    after = await owners(site)
    moved = {shard for shard in range(SHARDS) if after.get(shard) != before.get(shard)}
    return [a for a in answers if a.shard in moved], [a for a in answers if a.shard not in moved]


def told(what: str, answers: Sequence[Answer]) -> None:
    """Print what was measured."""
    after, waited = [one.after_s for one in answers], [one.waited_s for one in answers]
    calls = [one.calls for one in answers]
    print(  # noqa: T201 - it is here to be read
        f"\n{what}, {len(answers)} tables: last answer {max(after):.2f} s after the end, a player waited"
        f" {median(waited):.2f} s, at most {max(waited):.2f} s; {sum(n > 1 for n in calls)} called again,"
        f" at most {max(calls)} calls"
    )


async def stored_once(site: EngineSite, turns: int) -> None:
    """Every command stands in the log once, at as many tables as were asked."""
    async with await psycopg.AsyncConnection.connect(site.dsn) as connection:
        cursor = await connection.execute("select count(distinct table_id) from engine.event")
        assert await cursor.fetchone() == (turns,)
    assert not site.outcry()


async def test_every_table_of_a_killed_engine_answers_again_within_the_lease(site: EngineSite, bus: NatsBus) -> None:
    first, _ = site.engine(**DEFAULT_LEASES, **PATIENT), site.engine(**DEFAULT_LEASES, **PATIENT)
    await shared_evenly(site)

    moved, stayed = await measured(site, bus, first.kill, 1)

    assert len(moved) > TABLES / 4
    told("killed, changed hands", moved)
    told("killed, stayed", stayed)
    assert max(answer.after_s for answer in moved) < 12
    assert max(answer.calls for answer in moved) <= 2
    assert {answer.calls for answer in stayed} == {1}
    await stored_once(site, TABLES)


async def test_every_table_of_an_engine_told_to_stop_answers_again_at_once(site: EngineSite, bus: NatsBus) -> None:
    first, _ = site.engine(**DEFAULT_LEASES, **PATIENT), site.engine(**DEFAULT_LEASES, **PATIENT)
    await shared_evenly(site)

    moved, stayed = await measured(site, bus, first.ask_to_stop, 3)
    await asyncio.to_thread(first.wait, 10)

    assert first.exit_code() == 0
    assert len(moved) > TABLES / 4
    told("told to stop, changed hands", moved)
    told("told to stop, stayed", stayed)
    assert max(answer.waited_s for answer in (*moved, *stayed)) < 3
    assert {answer.calls for answer in (*moved, *stayed)} == {1}
    await stored_once(site, TABLES)
