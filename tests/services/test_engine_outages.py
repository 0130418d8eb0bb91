"""The servers beneath the engine go away for longer than any turn: nobody runs out of time for it, and play goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Protocol

import pytest
from gouji.table.v1 import table_pb2

from deploy.local.nats_server import NatsServer
from deploy.local.postgres_server import PostgresServer
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.service.waits import Spans
from engine.store.postgres import PostgresEventStore
from tests.support.engine_bench import Callers, Replica, eventually, start

SHORT = Spans(turn_ms=4_000, window_ms=4_000, between_ms=60_000, gathering_ms=60_000, late_ms=1_000)
WINDOW_ONLY = Spans(turn_ms=60_000, window_ms=2_500, between_ms=60_000, gathering_ms=60_000, late_ms=1_000)
OUTAGE_S = 6.0


class Server(Protocol):
    """What goes away and comes back."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class House:
    """Engines on real servers, each with connections of its own."""

    def __init__(self, dsn: str, nats_url: str, opened: AsyncExitStack) -> None:
        self._dsn = dsn
        self._nats_url = nats_url
        self._opened = opened
        self.replicas: list[Replica] = []

    async def bus(self) -> NatsBus:
        bus = await NatsBus.connect(NatsOptions((self._nats_url,)))
        self._opened.push_async_callback(bus.close)
        return bus

    async def engine(self, spans: Spans) -> Replica:
        store = await PostgresEventStore.open(self._dsn)
        self._opened.push_async_callback(store.close)
        replica = await start(store, await self.bus(), f"engine {len(self.replicas)}", spans)
        self._opened.push_async_callback(replica.stop)
        self.replicas.append(replica)
        return replica

    async def table(self) -> Callers:
        """A table whose deal has just begun: all six are asked in a window."""
        callers = Callers(await self.bus(), patience_s=30)
        await callers.open_with_six()
        await callers.all_ready()
        return callers


@pytest.fixture
async def house(database: str, nats_url: str) -> AsyncIterator[House]:
    async with AsyncExitStack() as opened:
        yield House(database, nats_url, opened)


@pytest.fixture(params=["postgres", "nats"])
def server(request: pytest.FixtureRequest, postgres_server: PostgresServer, nats_server: NatsServer) -> Server:
    return postgres_server if request.param == "postgres" else nats_server


async def events(callers: Callers) -> list[table_pb2.VersionedEvent]:
    """Everything that happened at the table, as the public knows it."""
    return list((await callers.history("nobody", limit=500)).events)


def kinds(history: list[table_pb2.VersionedEvent]) -> list[str]:
    """The names of the events, in order."""
    return [str(event.event.WhichOneof("fact")) for event in history]


def happened(callers: Callers, kind: str, times: int = 1) -> Callable[[], Awaitable[bool]]:
    """Whether this has happened so often."""

    async def has() -> bool:
        return kinds(await events(callers)).count(kind) >= times

    return has


async def test_an_outage_longer_than_a_turn_costs_nobody_his_time(house: House, server: Server) -> None:
    await house.engine(SHORT)
    tables = await asyncio.gather(*(house.table() for _ in range(3)))
    begun = [len(await events(callers)) for callers in tables]

    await asyncio.to_thread(server.stop)
    await asyncio.sleep(OUTAGE_S)
    await asyncio.to_thread(server.start)

    for callers, before in zip(tables, begun, strict=True):
        await eventually(happened(callers, "deadline_extended"), within=20)
        since = (await events(callers))[before:]
        assert kinds(since)[0] == "deadline_extended"
        assert since[0].event.deadline_extended.until_ms >= since[0].at_ms + 3_900
    for callers in tables:
        assert await callers.play(4) == 4
        assert kinds(await events(callers)).count("deadline_extended") == 1


async def test_a_deadline_passes_once_over_a_takeover(house: House) -> None:
    first, _ = await house.engine(WINDOW_ONLY), await house.engine(WINDOW_ONLY)
    tables = await asyncio.gather(*(house.table() for _ in range(12)))

    await asyncio.sleep(1.5)
    await first.crash()

    for callers in tables:
        await eventually(happened(callers, "timed_out", 6), within=20)
    await asyncio.sleep(0.5)
    for callers in tables:
        seats = Counter(
            event.event.timed_out.seat for event in await events(callers) if event.event.HasField("timed_out")
        )
        assert seats == dict.fromkeys(range(6), 1)
        assert kinds(await events(callers)).count("deadline_extended") <= 1
