import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID, uuid4

import pytest
from prometheus_client import CollectorRegistry

from engine.runtime import subjects
from engine.runtime.bus import BusUnavailable, OutOfSequence
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.clock import SystemClock
from engine.runtime.facts_memory import FactLog
from engine.runtime.gate import PREVIOUS_HASH
from engine.runtime.outbox_relay import POSITION
from engine.runtime.streams import stream_of
from engine.runtime.uuid7 import uuid7
from engine.service.measures import Measures
from engine.service.outbox import EVENT_ID, Outbox
from engine.service.shards import LeaseTerms, Shards
from engine.store.memory import MemoryEventStore
from engine.store.port import Append, NewEvent, OutboxEntry


class FlakyBus(MemoryBus):
    """A bus that loses some acknowledgements, or that cannot be reached at all."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.lose_acknowledgements = 0
        self.is_down = False
        self.pause_s = 0.0
        self.most_of_a_table = self.most_in_flight = 0
        self._in_flight = Counter[str]()

    async def publish_fact(
        self,
        subject: str,
        payload: bytes,
        *,
        event_id: str,
        expected_sequence: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        if self.is_down:
            raise BusUnavailable
        self._in_flight[subject] += 1
        self.most_of_a_table = max(self.most_of_a_table, self._in_flight[subject])
        self.most_in_flight = max(self.most_in_flight, self._in_flight.total())
        await asyncio.sleep(self.pause_s)
        self._in_flight[subject] -= 1
        sequence = await super().publish_fact(
            subject, payload, event_id=event_id, expected_sequence=expected_sequence, headers=headers
        )
        if self.lose_acknowledgements:
            self.lose_acknowledgements -= 1
            raise BusUnavailable
        return sequence


class Bench:
    """A store with facts to publish, a bus, and outboxes that come and go."""

    def __init__(self) -> None:
        self.store = MemoryEventStore()
        self.appends: list[Append] = []
        self.broker = Broker()
        self.bus = FlakyBus(self.broker)
        self.shards = Shards(self.store, SystemClock(), "a", LeaseTerms())
        self.registry = CollectorRegistry()
        self.outbox = self.fresh()

    def fresh(self) -> Outbox:
        """An outbox that knows nothing, as after a crash."""
        self.registry = CollectorRegistry()
        return Outbox(self.store, self.bus, SystemClock(), self.shards, measures=Measures(self.registry), sweep_ms=10)

    async def tell(self, table: UUID, position: int) -> None:
        """Store a fact of this table, the second event of a command."""
        entry = OutboxEntry(position, subjects.fact(table), f"{table}:{2 * position}", f"fact {position}".encode())
        events = (NewEvent("moved", 1, b""), NewEvent("told", 1, b""))
        append = Append(table, 2 * (position - 1), 1, uuid4(), "house", 0, events, outbox=(entry,))
        await self.store.append(append)
        self.appends.append(append)

    async def go_back(self, facts: int) -> None:
        """Restore the store from a copy that has so many facts, each of them published."""
        self.store = MemoryEventStore()
        del self.appends[facts:]
        for append in self.appends:
            await self.store.append(append)
            await self.store.mark_published(append.table_id, append.outbox[0].position)

    async def published(self, table: UUID) -> list[str]:
        """The facts of this table on the bus, in order."""
        seen: list[str] = []

        async def note(message: object) -> None:
            seen.append(getattr(message, "payload", b"").decode())

        subscription = await self.bus.consume(subjects.fact(table), uuid4().hex, note)
        await asyncio.sleep(0.02)
        await subscription.stop()
        return seen

    def value(self, name: str) -> float:
        return self.registry.get_sample_value(name) or 0.0


@pytest.fixture
async def bench() -> Bench:
    bench = Bench()
    await bench.shards.keep()
    return bench


async def test_facts_go_out_in_order_with_their_id_and_the_hash_before(bench: Bench) -> None:
    table = uuid7()
    for position in (1, 2, 3):
        await bench.tell(table, position)

    assert await bench.outbox.sweep() == 3

    last = await bench.bus.last_fact(subjects.fact(table))
    assert await bench.published(table) == ["fact 1", "fact 2", "fact 3"]
    assert last is not None
    assert last.headers[EVENT_ID] == f"{table}:6"
    assert len(bytes.fromhex(last.headers[PREVIOUS_HASH])) == 32
    assert await bench.store.pending_facts(bench.shards.held(), 10) == []


async def test_a_lost_acknowledgement_publishes_nothing_twice(bench: Bench) -> None:
    table = uuid7()
    await bench.tell(table, 1)
    await bench.tell(table, 2)
    bench.bus.lose_acknowledgements = 1

    assert await bench.outbox.sweep() == 0
    assert await bench.outbox.sweep() == 2

    assert await bench.published(table) == ["fact 1", "fact 2"]


@pytest.mark.parametrize("crash_after", [1, 2, 3])
async def test_a_crash_between_publishing_and_forgetting_publishes_each_fact_once(
    bench: Bench, crash_after: int
) -> None:
    table = uuid7()
    for position in range(1, crash_after + 1):
        await bench.tell(table, position)
    mark, bench.store.mark_published = bench.store.mark_published, _crash  # type: ignore[method-assign,assignment]
    with suppress(ConnectionAbortedError):
        await bench.outbox.sweep()
    bench.store.mark_published = mark  # type: ignore[method-assign]

    await bench.fresh().sweep()

    assert await bench.published(table) == [f"fact {position}" for position in range(1, crash_after + 1)]


async def _crash(*_: object) -> None:
    raise ConnectionAbortedError


async def test_one_fact_of_a_table_is_in_flight_and_many_tables_go_in_parallel(bench: Bench) -> None:
    tables = [uuid7() for _ in range(8)]
    for position in (1, 2, 3):
        for table in tables:
            await bench.tell(table, position)
    bench.bus.pause_s = 0.01

    await bench.outbox.sweep()

    assert bench.bus.most_of_a_table == 1
    assert bench.bus.most_in_flight == len(tables)


async def test_two_outboxes_at_once_publish_each_fact_once(bench: Bench) -> None:
    tables = [uuid7() for _ in range(20)]
    for position in (1, 2, 3):
        for table in tables:
            await bench.tell(table, position)

    await asyncio.gather(bench.fresh().sweep(), bench.fresh().sweep())
    await bench.outbox.sweep()

    for table in tables:
        assert await bench.published(table) == ["fact 1", "fact 2", "fact 3"]


async def test_facts_wait_while_the_bus_is_down_and_the_oldest_is_seen(bench: Bench) -> None:
    table = uuid7()
    await bench.tell(table, 1)
    bench.outbox = bench.fresh()
    bench.bus.is_down = True

    await bench.outbox.sweep()
    await asyncio.sleep(0.05)
    await bench.outbox.sweep()
    waiting, oldest = bench.value("gouji_engine_outbox_pending"), bench.value("gouji_engine_outbox_oldest_seconds")
    bench.bus.is_down = False
    await bench.outbox.sweep()

    assert waiting == 1
    assert oldest >= 0.05
    assert await bench.published(table) == ["fact 1"]


async def test_a_table_that_the_bus_contradicts_is_parked_and_others_go_on(bench: Bench) -> None:
    forked, sound = uuid7(), uuid7()
    await bench.bus.publish_fact(subjects.fact(forked), b"foreign", event_id="foreign", expected_sequence=0)
    await bench.tell(forked, 1)
    await bench.tell(sound, 1)
    bench.outbox = bench.fresh()

    await bench.outbox.sweep()

    assert bench.value("gouji_engine_outbox_parked_tables") == bench.value("gouji_engine_bus_forks") == 1
    assert await bench.published(forked) == ["foreign"]
    assert await bench.published(sound) == ["fact 1"]


async def test_facts_that_the_bus_has_lost_park_the_table(bench: Bench) -> None:
    table = uuid7()
    await bench.tell(table, 1)
    await bench.outbox.sweep()
    bench.broker = Broker()
    bench.bus = FlakyBus(bench.broker)
    await bench.tell(table, 2)
    bench.outbox = bench.fresh()

    await bench.outbox.sweep()

    assert bench.value("gouji_engine_outbox_parked_tables") == bench.value("gouji_engine_bus_holes") == 1
    assert await bench.published(table) == []


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("lost", [1, 2, 4])
async def test_a_log_that_lost_facts_which_the_bus_has_raises_the_alarm_of_a_fork(
    bench: Bench, lost: int, *, remembers: bool
) -> None:
    forked, sound = uuid7(), uuid7()
    for position in range(1, 2 + lost):
        await bench.tell(forked, position)
        await bench.outbox.sweep()
    before = await bench.published(forked)
    await bench.go_back(1)
    bench.outbox._store = bench.store
    bench.outbox = bench.outbox if remembers else bench.fresh()
    await bench.tell(forked, 2)
    await bench.tell(sound, 1)

    await bench.outbox.sweep()

    assert bench.value("gouji_engine_bus_forks") == 1
    assert await bench.published(forked) == before
    assert await bench.published(sound) == ["fact 1"]
    assert [fact.table_id for fact in await bench.store.pending_facts(bench.shards.held(), 10)] == [forked]


async def test_facts_that_an_operator_told_while_they_waited_are_not_published_again(bench: Bench) -> None:
    table = uuid7()
    for position in (1, 2, 3):
        await bench.tell(table, position)
    for fact in await bench.store.pending_facts(bench.shards.held(), 10):
        headers = {POSITION: str(fact.entry.position), PREVIOUS_HASH: fact.previous_hash.hex()}
        await bench.bus.publish_fact(
            fact.entry.subject, fact.entry.payload, event_id=fact.entry.event_id, headers=headers
        )

    assert await bench.outbox.sweep() == 3

    assert bench.value("gouji_engine_outbox_parked_tables") == 0
    assert await bench.published(table) == ["fact 1", "fact 2", "fact 3"]
    assert await bench.store.pending_facts(bench.shards.held(), 10) == []


async def test_facts_that_the_bus_has_lost_are_counted_though_nothing_new_happens(bench: Bench) -> None:
    lost, kept = uuid7(), uuid7()
    for table in (lost, kept):
        for position in (1, 2):
            await bench.tell(table, position)
    await bench.outbox.sweep()
    await bench.outbox.compare()
    before = bench.value("gouji_engine_bus_holes")
    bench.broker.logs["FACTS"] = FactLog(stream_of(subjects.FACTS))
    for position in (1, 2):
        await bench.bus.publish_fact(subjects.fact(kept), b"", event_id=f"{kept}:{position}")

    await bench.outbox.compare()
    after = bench.value("gouji_engine_bus_holes")
    for position in (1, 2):
        await bench.bus.publish_fact(subjects.fact(lost), b"", event_id=f"{lost}:{position}")
    await bench.outbox.compare()

    assert (before, after, bench.value("gouji_engine_bus_holes")) == (0, 1, 0)


async def test_a_parked_table_goes_on_once_its_facts_were_told_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = uuid7()
    await bench.tell(table, 1)
    await bench.outbox.sweep()
    bench.broker = Broker()
    bench.bus = FlakyBus(bench.broker)
    await bench.tell(table, 2)
    bench.outbox = bench.fresh()
    await bench.outbox.sweep()
    headers = {POSITION: "1"}
    await bench.bus.publish_fact(subjects.fact(table), b"fact 1", event_id=f"{table}:2", headers=headers)

    await bench.outbox.sweep()
    still_parked = bench.value("gouji_engine_outbox_parked_tables")
    monkeypatch.setattr(bench.outbox, "_parked", {table: bench.outbox._parked[table]._replace(until=0.0)})
    await bench.outbox.sweep()

    assert still_parked == 1
    assert bench.value("gouji_engine_outbox_parked_tables") == bench.value("gouji_engine_bus_holes") == 0
    assert await bench.published(table) == ["fact 1", "fact 2"]


async def test_a_parked_table_is_no_longer_counted_when_its_shard_is_lost(bench: Bench) -> None:
    forked = uuid7()
    await bench.bus.publish_fact(subjects.fact(forked), b"foreign", event_id="foreign", expected_sequence=0)
    await bench.tell(forked, 1)
    await bench.outbox.sweep()
    parked = bench.value("gouji_engine_outbox_parked_tables")

    await bench.shards.release()
    await bench.outbox.sweep()

    assert (parked, bench.value("gouji_engine_outbox_parked_tables")) == (1, 0)


async def test_a_nudge_publishes_without_waiting_for_the_sweep(bench: Bench) -> None:
    table = uuid7()
    outbox = Outbox(
        bench.store,
        bench.bus,
        SystemClock(),
        bench.shards,
        measures=Measures(CollectorRegistry()),
        sweep_ms=60_000,
    )
    running = asyncio.create_task(outbox.run())
    await asyncio.sleep(0.01)
    await bench.tell(table, 1)

    outbox.nudge()
    await asyncio.sleep(0.05)

    assert await bench.published(table) == ["fact 1"]
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_the_bus_itself_refuses_what_comes_out_of_order(bench: Bench) -> None:
    table = uuid7()
    await bench.tell(table, 1)
    await bench.outbox.sweep()

    with pytest.raises(OutOfSequence):
        await bench.bus.publish_fact(subjects.fact(table), b"late", event_id="late", expected_sequence=0)
