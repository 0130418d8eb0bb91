"""What operators may ask of every store and every bus, beyond what services need."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from engine.runtime import subjects
from engine.runtime.bus import Bus
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.uuid7 import uuid7
from engine.store.memory import MemoryEventStore
from engine.store.postgres import PostgresEventStore
from tests.support.streams import append, table_id


@pytest.fixture(params=["memory", "postgres"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MemoryEventStore | PostgresEventStore]:
    if request.param == "memory":
        opened: MemoryEventStore | PostgresEventStore = MemoryEventStore()
    else:
        opened = await PostgresEventStore.open(request.getfixturevalue("store_dsn"))
    yield opened
    await opened.close()


@pytest.fixture(params=["memory", "nats"])
async def bus(request: pytest.FixtureRequest, nats_url: str) -> AsyncIterator[Bus]:
    is_memory = request.param == "memory"
    connected = MemoryBus(Broker()) if is_memory else await NatsBus.connect(NatsOptions((nats_url,)))
    yield connected
    await connected.close()


async def test_every_stream_is_listed_by_table_id_open_or_closed(store: MemoryEventStore | PostgresEventStore) -> None:
    tables = sorted(table_id() for _ in range(7))
    for table in tables:
        await store.append(append(table, closes=table in tables[:3]))

    heads = await store.every_stream(UUID(int=0), 100)

    assert [head.table_id for head in heads] == tables
    assert [head.closed for head in heads] == [True] * 3 + [False] * 4
    assert heads[0] == await store.head(tables[0])
    assert [head.table_id for head in await store.every_stream(tables[2], 2)] == tables[2:4]
    assert await store.every_stream(UUID(int=tables[-1].int + 1), 100) == []


async def test_facts_are_counted_by_subject(bus: Bus) -> None:
    one, two = uuid7(), uuid7()
    for number in range(3):
        await bus.publish_fact(subjects.fact(one), b"", event_id=f"{one}{number}")
    await bus.publish_fact(subjects.fact(two), b"", event_id=f"{two}")
    await bus.publish_fact(subjects.match(two), b"", event_id="match")

    assert await bus.count_facts(subjects.FACTS) == {subjects.fact(one): 3, subjects.fact(two): 1}
    assert await bus.count_facts(subjects.fact(two)) == {subjects.fact(two): 1}
    assert await bus.count_facts(subjects.fact(uuid7())) == {}
