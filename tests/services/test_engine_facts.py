import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.engine.v1 import facts_pb2
from gouji.game.v1 import view_pb2
from gouji.matchmaking.v1 import facts_pb2 as matches_pb2

from engine.runtime import subjects
from engine.runtime.bus import FactMessage
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.clock import SystemClock
from engine.store.memory import MemoryEventStore
from tests.support.engine_bench import PLAYERS, Callers, Replica, accepted, eventually, start


class Bench:
    """One engine, and a reader of all facts."""

    def __init__(self, replica: Replica, broker: Broker) -> None:
        self.replica = replica
        self.bus = MemoryBus(broker)
        self.facts: list[facts_pb2.Fact] = []

    async def listen(self) -> None:
        async def note(message: FactMessage) -> None:
            self.facts.append(facts_pb2.Fact.FromString(message.payload))

        await self.bus.consume(subjects.FACTS, "reader", note)

    async def has(self, kind: str) -> None:
        """Wait until a fact of this kind has come."""

        async def has_come() -> bool:
            return any(fact.WhichOneof("fact") == kind for fact in self.facts)

        await eventually(has_come)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    broker = Broker(pause=0.05)
    replica = await start(MemoryEventStore(), MemoryBus(broker))
    bench = Bench(replica, broker)
    await bench.listen()
    yield bench
    await replica.stop()


async def test_a_match_tells_its_facts_in_order_and_without_holes(bench: Bench) -> None:
    callers = Callers(bench.bus)
    await callers.open_with_six(deals=2)
    for _ in range(2):
        await callers.all_ready()
        await callers.play()
    await bench.has("match_finished")

    opened, *deals, finished = bench.facts
    assert [fact.position for fact in bench.facts] == list(range(1, len(bench.facts) + 1))
    assert opened.table_opened.players == list(PLAYERS)
    assert [fact.deal_finished.deal for fact in deals] == list(range(1, len(deals) + 1))
    assert len([fact for fact in deals if fact.deal_finished.places]) == 2
    assert sum(fact.deal_finished.even_points for fact in deals) == finished.match_finished.even_points
    assert all(fact.event_id == f"{callers.table_id}:{fact.event_id.split(':')[1]}" for fact in bench.facts)
    assert finished.match_finished.ranked


async def test_a_closed_table_tells_why(bench: Bench) -> None:
    callers = Callers(bench.bus)
    await callers.open_with_six()
    accepted(await callers.send("admin", house=engine.House(kind=engine.House.KIND_CLOSE, reason="flood")))
    await bench.has("table_closed")

    assert bench.facts[-1].table_closed.reason == "flood"
    assert [fact.position for fact in bench.facts] == [1, 2]


async def test_a_found_match_becomes_one_table_however_often_it_is_told(bench: Bench) -> None:
    callers = Callers(bench.bus)
    found = matches_pb2.MatchFound(
        table_id=str(callers.table_id), variant_key="qingdao-charter", deals=1, players=PLAYERS
    )
    for _ in range(3):
        await bench.bus.publish_fact(subjects.match(callers.table_id), found.SerializeToString(), event_id=str(uuid4()))
    await bench.has("table_opened")
    await asyncio.sleep(0.1)

    view = (await callers.view("anna")).public
    assert [seat.player_id for seat in view.seats] == list(PLAYERS)
    assert view.phase == view_pb2.TABLE_PHASE_GATHERING
    assert len(bench.facts) == 1


async def test_a_match_is_not_opened_after_its_time(bench: Bench) -> None:
    late, in_time = Callers(bench.bus), Callers(bench.bus)
    now_ms = SystemClock().now_ms()
    for callers, open_before_ms in ((late, now_ms - 1), (in_time, now_ms + 60_000)):
        found = matches_pb2.MatchFound(
            table_id=str(callers.table_id),
            variant_key="qingdao-charter",
            deals=1,
            players=PLAYERS,
            open_before_ms=open_before_ms,
        )
        await bench.bus.publish_fact(
            subjects.match(callers.table_id), found.SerializeToString(), event_id=found.table_id
        )
    await bench.has("table_opened")
    await asyncio.sleep(0.1)

    assert [fact.table_id for fact in bench.facts] == [str(in_time.table_id)]


async def test_a_withdrawn_match_has_its_table_closed(bench: Bench) -> None:
    callers = Callers(bench.bus)
    await callers.open_with_six()
    withdrawn = matches_pb2.MatchFound(table_id=str(callers.table_id), withdrawn=True)
    for _ in range(2):
        await bench.bus.publish_fact(
            subjects.match(callers.table_id), withdrawn.SerializeToString(), event_id=str(uuid4())
        )
    await bench.has("table_closed")
    await asyncio.sleep(0.1)

    assert bench.facts[-1].table_closed.reason == "opened_too_late"
    assert len(bench.facts) == 2


async def test_a_match_that_can_be_no_table_does_not_hold_up_the_next(bench: Bench) -> None:
    callers = Callers(bench.bus)
    poison = [
        b"\xff\xff",
        matches_pb2.MatchFound(table_id="no uuid").SerializeToString(),
        matches_pb2.MatchFound(table_id=str(uuid4()), variant_key="no such", players=PLAYERS).SerializeToString(),
        matches_pb2.MatchFound(
            table_id=str(uuid4()), variant_key="qingdao-charter", players=["anna"] * 6
        ).SerializeToString(),
    ]
    sound = matches_pb2.MatchFound(
        table_id=str(callers.table_id), variant_key="qingdao-charter", deals=1, players=PLAYERS
    )
    for payload in (*poison, sound.SerializeToString()):
        await bench.bus.publish_fact(subjects.match(uuid4()), payload, event_id=str(uuid4()))

    await bench.has("table_opened")

    assert [fact.table_id for fact in bench.facts] == [str(callers.table_id)]
