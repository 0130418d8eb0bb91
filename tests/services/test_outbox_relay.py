"""The relay of the services' outboxes: everything reaches the bus, once, in order per subject, whatever breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from psycopg_pool import AsyncConnectionPool

from engine.runtime.bus import Bus, BusUnavailable, FactMessage
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.outbox_relay import POSITION, OutboxRelay, OutgoingFact, RelayMeasures, put

Connect = Callable[[], Awaitable[MemoryBus | NatsBus]]


@pytest.fixture(params=["memory", "nats"])
def connect(request: pytest.FixtureRequest) -> Connect:
    async def memory() -> MemoryBus:
        return MemoryBus(Broker())

    if request.param == "memory":
        return memory
    url = request.getfixturevalue("nats_url")
    return lambda: NatsBus.connect(NatsOptions((url,)))


@pytest.fixture
async def bus(connect: Connect) -> AsyncIterator[Bus]:
    bus = await connect()
    yield bus
    await bus.close()


class FaultyBus:
    """A bus on which publishing on some subjects breaks, before or after the message is stored."""

    def __init__(self, bus: Bus, *, before: str = "-", after: str = "-") -> None:
        self._bus = bus
        self.before = before
        self.after = after

    async def last_fact(self, subject: str) -> FactMessage | None:
        return await self._bus.last_fact(subject)

    async def publish_fact(self, subject: str, payload: bytes, **how: Any) -> int:
        if self.before in subject:
            raise BusUnavailable
        sequence = await self._bus.publish_fact(subject, payload, **how)
        if self.after in subject:
            raise BusUnavailable
        return sequence


def relay_on(pool: AsyncConnectionPool, bus: Any, registry: CollectorRegistry | None = None, **how: Any) -> OutboxRelay:
    return OutboxRelay(pool, bus, RelayMeasures(registry or CollectorRegistry(), "test"), sweep_s=0.05, **how)


async def store(pool: AsyncConnectionPool, counts: Mapping[str, int]) -> None:
    facts = [
        OutgoingFact(f"gouji.rating.{name}", position, f"{name}:{position}", f"{name} {position}".encode())
        for name, count in counts.items()
        for position in range(1, count + 1)
    ]
    async with pool.connection() as connection:
        await put(connection, facts)


async def heard(bus: Bus, most: int) -> list[str]:
    """Everything in the stream, in its order; one more than `most` would be noticed."""
    payloads: list[str] = []
    done = asyncio.Event()

    async def listen(fact: FactMessage) -> None:
        payloads.append(fact.payload.decode())
        if len(payloads) >= most:
            done.set()

    subscription = await bus.consume("gouji.rating.>", "listener", listen)
    await asyncio.wait_for(done.wait(), 10)
    await asyncio.sleep(0.1)
    await subscription.stop()
    return payloads


async def left(pool: AsyncConnectionPool) -> int:
    async with pool.connection() as connection:
        row = await (await connection.execute("select count(*) from outbox")).fetchone()
    return int(row[0]) if row else 0


async def becomes(pool: AsyncConnectionPool, count: int) -> None:
    """Wait until so many facts are left."""
    async with asyncio.timeout(10):
        while await left(pool) != count:  # noqa: ASYNC110 - a database rings no bell
            await asyncio.sleep(0.02)


def in_order(payloads: list[str], counts: Mapping[str, int]) -> bool:
    """Whether every fact of every subject was heard once, in order."""
    return all(
        [text for text in payloads if text.split()[0] == name] == [f"{name} {n}" for n in range(1, count + 1)]
        for name, count in counts.items()
    ) and len(payloads) == sum(counts.values())


async def test_everything_is_published_in_order_and_forgotten(ranking_pool: AsyncConnectionPool, bus: Bus) -> None:
    counts = {"ann": 3, "bob": 1, "cid": 2}
    await store(ranking_pool, counts)

    assert await relay_on(ranking_pool, bus, page=2).sweep() == 6

    assert await left(ranking_pool) == 0
    assert in_order(await heard(bus, 6), counts)


async def test_relays_of_many_replicas_neither_double_nor_reorder(ranking_pool: AsyncConnectionPool, bus: Bus) -> None:
    counts = dict.fromkeys("abcdefgh", 4)
    await store(ranking_pool, counts)
    relays = [relay_on(ranking_pool, bus) for _ in range(3)]

    while await left(ranking_pool):
        await asyncio.gather(*(relay.sweep() for relay in relays))

    assert in_order(await heard(bus, 32), counts)


async def test_a_crash_between_publishing_and_forgetting_doubles_nothing(
    ranking_pool: AsyncConnectionPool, bus: Bus
) -> None:
    counts = {"ann": 2, "bob": 1}
    await store(ranking_pool, counts)
    with pytest.raises(BusUnavailable):
        await relay_on(ranking_pool, FaultyBus(bus, after="gouji")).sweep()

    await relay_on(ranking_pool, bus).sweep()

    assert in_order(await heard(bus, 3), counts)


async def test_a_subject_that_cannot_be_published_does_not_stop_the_others(
    ranking_pool: AsyncConnectionPool, bus: Bus
) -> None:
    await store(ranking_pool, {"ann": 2, "bob": 2, "cid": 2, "dan": 2, "eve": 2})
    faulty = FaultyBus(bus, before="bob")
    relay = relay_on(ranking_pool, faulty, page=1)

    running = asyncio.create_task(relay.run())
    await becomes(ranking_pool, 2)
    faulty.before = "-"
    await becomes(ranking_pool, 0)
    running.cancel()

    assert in_order(await heard(bus, 10), {"ann": 2, "bob": 2, "cid": 2, "dan": 2, "eve": 2})


async def test_what_waits_is_counted_also_while_the_bus_takes_nothing(
    ranking_pool: AsyncConnectionPool, bus: Bus
) -> None:
    await store(ranking_pool, {"ann": 2, "bob": 1})
    registry = CollectorRegistry()

    with pytest.raises(BusUnavailable):
        await relay_on(ranking_pool, FaultyBus(bus, before="gouji"), registry).sweep()

    assert registry.get_sample_value("gouji_test_outbox_pending") == 3
    assert (registry.get_sample_value("gouji_test_outbox_oldest_seconds") or 0) > 0


async def test_a_fact_whose_transaction_ends_late_is_not_passed_over(
    ranking_pool: AsyncConnectionPool, bus: Bus
) -> None:
    relay = relay_on(ranking_pool, bus)
    async with ranking_pool.connection() as slow:
        await put(slow, [OutgoingFact("gouji.rating.ann", 1, "ann:1", b"ann 1")])
        await store(ranking_pool, {"bob": 1, "zoe": 1})
        assert await relay.sweep() == 2

    assert await relay.sweep() == 1
    assert in_order(await heard(bus, 3), {"ann": 1, "bob": 1, "zoe": 1})


async def test_facts_written_again_from_the_start_are_not_published_again(
    ranking_pool: AsyncConnectionPool, bus: Bus
) -> None:
    await store(ranking_pool, {"ann": 2})
    await relay_on(ranking_pool, bus).sweep()

    await store(ranking_pool, {"ann": 3})
    await relay_on(ranking_pool, bus).sweep()

    assert in_order(await heard(bus, 3), {"ann": 3})


async def test_a_fact_says_its_position(ranking_pool: AsyncConnectionPool, bus: Bus) -> None:
    await store(ranking_pool, {"ann": 2})

    await relay_on(ranking_pool, bus).sweep()

    last = await bus.last_fact("gouji.rating.ann")
    assert last is not None
    assert (last.headers[POSITION], last.headers["Nats-Msg-Id"]) == ("2", "ann:2")
