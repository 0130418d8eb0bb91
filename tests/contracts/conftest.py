"""Every adapter of a port, one after the other, for the one suite that holds them all to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from engine.runtime.bus import (
    Bus,
)
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.bus_split import SplitBus
from engine.store.memory import MemoryEventStore
from engine.store.port import (
    EventStore,
)
from engine.store.postgres import PostgresEventStore
from tests.support.adapters import FakeClock, Opened, really_pass_ms
from tests.support.buses import PAUSE, Connect


@pytest.fixture(params=["memory", "postgres"])
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[Opened]:
    if request.param == "memory":
        clock = FakeClock()
        yield Opened(MemoryEventStore(clock), clock.pass_ms)
        return
    store = await PostgresEventStore.open(request.getfixturevalue("store_dsn"))
    yield Opened(store, really_pass_ms)
    await store.close()


@pytest.fixture
def store(opened: Opened) -> EventStore:
    return opened.store


@pytest.fixture(params=["memory", "nats", "split"])
def connect_one(request: pytest.FixtureRequest) -> Connect:
    if request.param == "memory":
        return _memory()
    nats = _nats(request.getfixturevalue("nats_url"))
    return nats if request.param == "nats" else _split(_memory(), nats)


@pytest.fixture
async def connect(connect_one: Connect) -> AsyncIterator[Connect]:
    """Connects one more client to the same bus; all are closed at the end."""
    async with AsyncExitStack() as stack:

        async def connect_and_close() -> Bus:
            bus = await connect_one()
            stack.push_async_callback(bus.close)
            return bus

        yield connect_and_close


def _memory() -> Connect:
    broker = Broker(pause=PAUSE)

    async def connect_one() -> Bus:
        return MemoryBus(broker)

    return connect_one


def _nats(url: str) -> Connect:
    async def connect_one() -> Bus:
        return await NatsBus.connect(NatsOptions((url,), pause=PAUSE))

    return connect_one


def _split(inside: Connect, outside: Connect) -> Connect:
    async def connect_one() -> Bus:
        return SplitBus(await inside(), await outside(), ("outward.*",))

    return connect_one


@pytest.fixture
async def bus(connect: Connect) -> Bus:
    return await connect()


@pytest.fixture
async def other(connect: Connect) -> Bus:
    return await connect()
