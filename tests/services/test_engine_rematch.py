"""Rematches over the bus: six who ask at once, engines that die, time that passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from uuid import UUID

import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import action_pb2, variant_pb2, view_pb2

from engine import match
from engine.match import Seating
from engine.rules.variant import VARIANTS
from engine.runtime import subjects
from engine.runtime.bus import BusUnavailable, NoResponders, RequestTimedOut
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.clock import ManualClock
from engine.runtime.uuid7 import made_at_ms
from engine.service import wire
from engine.service.rematches_client import WITHIN_MS, Rematches, id_of_rematch
from engine.service.standing import Standing, fold
from engine.store.memory import MemoryEventStore
from engine.store.port import EventStore, shard_of
from engine.store.postgres import PostgresEventStore
from tests.support.engine_bench import PLAYERS, Callers, Replica, accepted, start
from tests.support.faulty_store import FaultyStore, Trouble, lost_after, lost_before, unreachable

SHORT = ("deck={5:16,6:16,7:16,8:16,9:16,T:16,J:16,Q:16,K:16}", "chaos_after=1")
NOT_NOW = {engine.FAULT_UNAVAILABLE, engine.FAULT_BUSY}


@dataclass
class Bench:
    """Two engines that share the shards of a store that can break."""

    broker: Broker
    store: FaultyStore
    replicas: list[Replica]

    def callers(self) -> Callers:
        return Callers(MemoryBus(self.broker))

    async def finished(self) -> Callers:
        """A match that was played to its end, by switches and a seating of its own."""
        callers = self.callers()
        await self.opened(callers)
        await callers.all_ready()
        await callers.play()
        return callers

    async def opened(self, callers: Callers) -> None:
        opening = engine.OpenTable(
            variant_key="shandong",
            switches=SHORT,
            deals=1,
            seating=variant_pb2.SEATING_DRAW,
            players=PLAYERS,
            ranked=True,
        )
        accepted(await callers.send("service", open_table=opening))

    async def asks(self, player: str, table_id: UUID | str) -> engine.RematchReply:
        """Ask until it is answered, as the table service does."""
        bus = MemoryBus(self.broker)
        request = engine.RematchRequest(table_id=str(table_id), caller=engine.Caller(player_id=player, role="player"))
        async with asyncio.timeout(15):
            while True:
                with suppress(NoResponders, RequestTimedOut, BusUnavailable):
                    payload = await bus.request(subjects.REMATCH, request.SerializeToString(), timeout=2)
                    reply = engine.RematchReply.FromString(payload)
                    if not reply.HasField("fault") or reply.fault not in NOT_NOW:
                        return reply
                await asyncio.sleep(0.02)

    async def standing(self, table_id: UUID | str) -> Standing:
        return await fold(self.store.inner, UUID(str(table_id)))

    async def tables(self) -> Sequence[UUID]:
        """Those that are not over."""
        return [head.table_id for head in await self.store.inner.list_streams(50)]


@asynccontextmanager
async def two_engines_on(inner: EventStore) -> AsyncIterator[Bench]:
    broker, store = Broker(), FaultyStore(inner)
    replicas = [await start(store, MemoryBus(broker), owner) for owner in ("a", "b")]
    yield Bench(broker, store, replicas)
    store.is_down = False
    for replica in replicas:
        await replica.stop()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with two_engines_on(MemoryEventStore()) as bench:
        yield bench


async def test_six_who_ask_at_once_get_one_table_with_all_in_their_seats(bench: Bench) -> None:
    played = await bench.finished()
    before = (await bench.standing(played.table_id)).match

    replies = await asyncio.gather(*(bench.asks(player, played.table_id) for player in PLAYERS))

    assert {(reply.table_id, reply.outcome.accepted.version) for reply in replies} == {(replies[0].table_id, 1)}
    assert await bench.tables() == [UUID(replies[0].table_id)]
    after = (await bench.standing(replies[0].table_id)).match
    assert after.players == before.players
    assert (after.variant, after.seating, after.ranked) == (before.variant, Seating.DRAW, False)
    assert before.ranked
    assert after.phase is match.Phase.GATHERING


async def test_the_tables_id_tells_the_moment_in_which_the_match_ended(bench: Bench) -> None:
    played = await bench.finished()
    version = (await bench.standing(played.table_id)).version
    (last,) = await bench.store.read(played.table_id, version - 1)

    rematch = UUID((await bench.asks("anna", played.table_id)).table_id)

    assert (rematch.version, made_at_ms(rematch)) == (7, last.at_ms)


async def test_a_rematch_is_played_and_has_a_rematch(bench: Bench) -> None:
    played = await bench.finished()
    again = Callers(MemoryBus(bench.broker), UUID((await bench.asks("anna", played.table_id)).table_id))

    await again.all_ready()
    await again.play()
    third = await bench.asks("boris", again.table_id)
    late = await bench.asks("chen", played.table_id)

    assert await again.is_in(view_pb2.TABLE_PHASE_FINISHED)
    assert third.outcome.HasField("accepted")
    assert late.table_id == str(again.table_id)
    assert len({third.table_id, str(again.table_id), str(played.table_id)}) == 3


async def test_who_is_not_of_the_six_is_refused(bench: Bench) -> None:
    played = await bench.finished()

    reply = await bench.asks("zoe", played.table_id)

    assert reply.outcome.refused.reason == action_pb2.REASON_NOT_YOUR_TABLE
    assert reply.table_id == ""
    assert await bench.tables() == []


async def test_a_match_that_runs_is_refused_and_runs_on(bench: Bench) -> None:
    running = bench.callers()
    await bench.opened(running)
    await running.all_ready()
    version = (await bench.standing(running.table_id)).version

    reply = await bench.asks("anna", running.table_id)

    assert reply.outcome.refused.reason == action_pb2.REASON_NOT_FINISHED
    assert reply.outcome.refused.version == version
    assert await bench.tables() == [running.table_id]


@pytest.mark.parametrize(
    ("table_id", "fault"),
    [("2bd9518e-6321-4ca0-b764-78c8ef529725", engine.FAULT_NOT_FOUND), ("no id", engine.FAULT_MALFORMED)],
)
async def test_there_is_no_rematch_of_what_never_was(
    bench: Bench, table_id: str, fault: engine.Fault.ValueType
) -> None:
    assert (await bench.asks("anna", table_id)).fault == fault


async def test_in_postgres_too_six_who_ask_at_once_get_one_table(postgres_store: PostgresEventStore) -> None:
    async with two_engines_on(postgres_store) as bench:
        played = await bench.finished()
        bench.store.troubles = [lost_after]

        replies = await asyncio.gather(*(bench.asks(player, played.table_id) for player in PLAYERS))

        assert {reply.outcome.accepted.version for reply in replies} == {1}
        assert await bench.tables() == [UUID(replies[0].table_id)]


@pytest.mark.parametrize("troubles", [[unreachable], [lost_before], [lost_after], [lost_after, unreachable]])
async def test_a_store_that_breaks_while_six_ask_leaves_one_table(bench: Bench, troubles: list[Trouble]) -> None:
    played = await bench.finished()
    bench.store.troubles = list(troubles)

    replies = await asyncio.gather(*(bench.asks(player, played.table_id) for player in PLAYERS))

    assert {reply.outcome.accepted.version for reply in replies} == {1}
    assert await bench.tables() == [UUID(replies[0].table_id)]
    assert len({reply.table_id for reply in replies}) == 1


async def test_an_engine_that_dies_after_opening_leaves_the_same_table_to_the_next(bench: Bench) -> None:
    played = await bench.finished()
    first = await bench.asks("anna", played.table_id)
    shard = shard_of(UUID(first.table_id))
    leader = next(replica for replica in bench.replicas if shard in replica.engine.shards.held())

    await leader.crash()
    again = await bench.asks("boris", played.table_id)

    assert again == first
    assert await bench.tables() == [UUID(first.table_id)]


async def test_a_rematch_is_opened_within_the_hour_and_found_for_ever(bench: Bench) -> None:
    played, missed = await bench.finished(), await bench.finished()
    opened = await bench.asks("anna", played.table_id)
    ended_at_ms = made_at_ms(UUID(opened.table_id))
    caller = engine.Caller(player_id="boris", role="player")

    def asked_at(now_ms: int, of: Callers) -> Awaitable[engine.RematchReply]:
        return Rematches(bench.store, MemoryBus(bench.broker), ManualClock(now_ms)).ask(of.table_id, caller)

    too_late = ended_at_ms + WITHIN_MS + 60_000
    assert await asked_at(too_late, played) == opened
    assert (await asked_at(too_late, missed)).outcome.refused.reason == action_pb2.REASON_NO_REMATCH
    assert (await asked_at(ended_at_ms + WITHIN_MS - 60_000, missed)).outcome.HasField("accepted")


def test_the_id_of_a_rematch_never_changes() -> None:
    """Six askers on engines of two versions must get one table."""
    table_id = UUID("01939c2e-0000-7000-8000-000000000001")

    assert id_of_rematch(table_id, 1_790_000_000_000) == UUID("01a0c450-6c00-7e0a-bbb3-6abbd96356f1")


@pytest.mark.parametrize("key", VARIANTS)
def test_an_opening_travels_whole(key: str) -> None:
    for seating in Seating:
        opening = match.OpenTable(VARIANTS[key], seating, PLAYERS)
        request = engine.CommandRequest(
            caller=engine.Caller(player_id="anna", role="service"), open_table=wire.opening(opening)
        )

        assert wire.command(request, lambda: (5, 4, 3, 2, 1, 0)) == opening
