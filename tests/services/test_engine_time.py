import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import view_pb2
from gouji.table.v1 import table_pb2

from engine.runtime.bus_memory import Broker, MemoryBus
from engine.service.waits import Spans
from engine.store.memory import MemoryEventStore
from tests.support.engine_bench import PATIENT, PLAYERS, Callers, Replica, accepted, eventually, start
from tests.support.faulty_store import FaultyStore

QUICK = Spans(turn_ms=400, window_ms=400, between_ms=2_000, gathering_ms=400, late_ms=600)


class Bench:
    """A broker and a store that outlive the engines on them."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.store = FaultyStore(MemoryEventStore())
        self.replicas: list[Replica] = []

    async def engine(self, spans: Spans = QUICK) -> Replica:
        name = f"engine {len(self.replicas)}"
        self.replicas.append(await start(self.store, MemoryBus(self.broker), name, spans))
        return self.replicas[-1]

    def callers(self) -> Callers:
        return Callers(MemoryBus(self.broker))


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    bench.store.is_down = False
    for replica in bench.replicas:
        await replica.stop()


async def dealt(bench: Bench) -> Callers:
    """A table whose deal is running."""
    callers = bench.callers()
    await callers.open_with_six()
    await callers.all_ready()
    return callers


async def events(callers: Callers, kind: str) -> list[table_pb2.VersionedEvent]:
    """The events of this kind in the table's history."""
    found: list[table_pb2.VersionedEvent] = []
    after, complete = 0, False
    while not complete:
        page = await callers.history("nobody", after)
        found.extend(event for event in page.events if event.event.WhichOneof("fact") == kind)
        complete = page.complete
        after = page.events[-1].version if page.events else after
    return found


async def until(callers: Callers, kind: str, count: int = 1, within: float = 5.0) -> list[table_pb2.VersionedEvent]:
    """Wait for so many events of a kind."""

    async def have_come() -> bool:
        return len(await events(callers, kind)) >= count

    await eventually(have_come, within)
    return await events(callers, kind)


async def test_everyone_asked_in_a_window_has_the_same_time_and_times_out_together(bench: Bench) -> None:
    await bench.engine()
    callers = await dealt(bench)
    public = (await callers.view("nobody")).public
    asked = len(public.window.waiting)

    timed_out = await until(callers, "timed_out", asked)

    assert asked == 6
    assert len({event.at_ms for event in timed_out[:asked]}) == 1
    assert timed_out[0].at_ms >= public.deadline_at_ms


async def test_an_answer_in_a_window_does_not_give_the_others_more_time(bench: Bench) -> None:
    await bench.engine(PATIENT)
    callers = await dealt(bench)
    before = (await callers.view("nobody")).public.deadline_at_ms

    await callers.play(2)

    assert (await callers.view("nobody")).public.deadline_at_ms == before


async def test_a_match_that_nobody_plays_ends_by_itself(bench: Bench) -> None:
    await bench.engine(replace(QUICK, turn_ms=5, window_ms=5))
    callers = await dealt(bench)

    await eventually(lambda: callers.is_in(view_pb2.TABLE_PHASE_FINISHED), within=60)


async def test_a_table_that_nobody_joins_is_closed(bench: Bench) -> None:
    await bench.engine()
    callers = bench.callers()
    accepted(await callers.send("anna", open_table=engine.OpenTable(variant_key="qingdao-charter", deals=1)))

    closed = await until(callers, "table_closed")

    assert closed[0].event.table_closed.reason == "abandoned"
    assert (await bench.store.inner.head(callers.table_id)).closed


async def test_the_next_deal_starts_when_the_pause_is_over(bench: Bench) -> None:
    await bench.engine()
    callers = bench.callers()
    await callers.open_with_six(deals=2)
    await callers.all_ready()
    await callers.play()

    started = await until(callers, "deal_started", 2)

    assert len(started) == 2


async def test_a_deadline_passes_once_over_a_restart(bench: Bench) -> None:
    first = await bench.engine(replace(QUICK, window_ms=3500, late_ms=1000))
    callers = await dealt(bench)
    deadline = (await callers.view("nobody")).public.deadline_at_ms
    await first.stop()

    await bench.engine(replace(QUICK, window_ms=3500, turn_ms=60_000, late_ms=1000))
    timed_out = await until(callers, "timed_out", 6)
    await asyncio.sleep(0.5)

    assert len(await events(callers, "timed_out")) == 6
    assert not await events(callers, "deadline_extended")
    assert 0 <= timed_out[0].at_ms - deadline < 1000


async def test_two_leaders_one_after_the_other_never_pass_the_same_deadline_twice(bench: Bench) -> None:
    first = await bench.engine(replace(QUICK, turn_ms=60_000))
    callers = await dealt(bench)
    await until(callers, "timed_out", 6)
    await first.stop()

    await bench.engine(replace(QUICK, turn_ms=60_000))
    await asyncio.sleep(0.6)

    assert len(await events(callers, "timed_out")) == 6


async def test_after_an_outage_of_the_engine_players_get_their_time_again(bench: Bench) -> None:
    first = await bench.engine(replace(QUICK, window_ms=1000))
    callers = await dealt(bench)
    await first.stop()
    await asyncio.sleep(1.5)

    await bench.engine(replace(QUICK, window_ms=1000, turn_ms=60_000))
    extended = await until(callers, "deadline_extended")
    assert not await events(callers, "timed_out")
    assert extended[0].event.deadline_extended.until_ms >= extended[0].at_ms + 900

    timed_out = await until(callers, "timed_out", 6)
    assert timed_out[0].at_ms >= extended[0].event.deadline_extended.until_ms
    assert len(await events(callers, "deadline_extended")) == 1


async def test_after_an_outage_of_the_store_players_get_their_time_again(bench: Bench) -> None:
    await bench.engine(replace(QUICK, window_ms=800, turn_ms=60_000))
    callers = await dealt(bench)
    bench.store.is_down = True
    await asyncio.sleep(1.2)

    bench.store.is_down = False
    await until(callers, "deadline_extended")

    assert not await events(callers, "timed_out")
    assert len(await until(callers, "timed_out", 6)) == 6


async def test_a_deadline_of_an_older_turn_does_nothing_to_a_newer_one(bench: Bench) -> None:
    replica = await bench.engine(replace(QUICK, window_ms=60_000, turn_ms=60_000))
    callers = await dealt(bench)
    older = (await replica.engine.tables.look(callers.table_id)).deadline
    assert older is not None
    await callers.play(8)
    version = (await callers.view("nobody")).version

    await replica.engine.tables.pass_deadline(callers.table_id, older)

    assert (await callers.view("nobody")).version == version


async def test_each_turn_has_its_own_deadline_for_all_to_see(bench: Bench) -> None:
    await bench.engine(PATIENT)
    callers = await dealt(bench)
    await callers.play(6)
    public = (await callers.view("nobody")).public
    assert public.HasField("turn")
    first = public.deadline_at_ms
    await asyncio.sleep(0.02)

    await callers.play(1)

    assert (await callers.view(PLAYERS[0])).public.deadline_at_ms > first
