"""An engine and a table service in this process, and a count of everything that tables might leave behind in them.

Law: the store forgets what is closed, as an archive does, so that memory can come back to where it was; everything else
is what runs in production. What a table might leave is counted among all living objects where no part tells its number.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

import grpc
from gouji.table.v1 import table_pb2 as pb
from gouji.table.v1 import table_pb2_grpc as rpc
from prometheus_client import CollectorRegistry

from engine.runtime import subjects
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.desk import Desk
from engine.runtime.facts_memory import FactLog
from engine.runtime.limits import Meter
from engine.runtime.running import Running
from engine.runtime.streams import STREAMS
from engine.service.shards import LeaseTerms
from engine.service.table import Table
from engine.store.memory import MemoryEventStore
from engine.store.port import SHARDS
from services.table.engine_client import Patience
from services.table.feeds import Feed
from services.table.limits import Limits
from services.table.presence import Presence
from services.table.rooms import Room
from services.table.streams import Stream
from tests.support.engine_bench import PATIENT, Replica, eventually, start
from tests.support.proxy import FaultyProxy
from tests.support.table_server import TableServer, table_server, token

PEOPLE = 600
"""Players who come again and again."""
_FACTS_KEPT = 5_000
"""More than are told while any table is open: a table whose earlier facts the bus has lost is parked."""
_TABLES_KEPT = 20
_COUNTED = (Table, Room, Presence, Feed, Stream, Running, Desk)

Stub: TypeAlias = "rpc.TableServiceAsyncStub"


class Forgetful(MemoryEventStore):
    """Keeps only the newest of the streams that are closed and whose facts are out."""

    def __init__(self) -> None:
        super().__init__()
        self._done: deque[UUID] = deque()

    async def mark_published(self, table_id: UUID, position: int) -> None:
        """Forget an outbox row, and with the last one of a closed stream the oldest such stream."""
        await super().mark_published(table_id, position)
        stream = self._streams[table_id]
        if stream.head.closed and not stream.facts:
            self._done.append(table_id)
        if len(self._done) > _TABLES_KEPT:
            del self._streams[self._done.popleft()]

    @property
    def unfinished(self) -> int:
        """Streams that are not closed, or have facts that are not out."""
        return len(self._streams) - len(self._done)


@dataclass
class House:
    """What runs, and its players: `crews` of six devices, each with a connection that stays, and a token for everybody."""

    store: Forgetful
    broker: Broker
    bus: MemoryBus
    replica: Replica
    server: TableServer
    crews: tuple[tuple[Stub, ...], ...]
    tokens: tuple[tuple[tuple[str, str]], ...]


@asynccontextmanager
async def house(crews: int, gathering_ms: int = PATIENT.gathering_ms) -> AsyncIterator[House]:
    """Run an engine and a table service for a while. `gathering_ms`: how long a table waits for one more player."""
    store = Forgetful()
    broker = Broker(logs={one.name: FactLog(replace(one, max_messages=_FACTS_KEPT)) for one in STREAMS})
    bus = MemoryBus(broker)
    replica = await start(store, bus, spans=replace(PATIENT, gathering_ms=gathering_ms), leases=LeaseTerms())
    await eventually(partial(_all_doors_open, broker))
    async with table_server(bus, patience=Patience()) as server, AsyncExitStack() as stack:
        tokens = tuple(_metadata(f"player{number}") for number in range(PEOPLE))
        devices = [[await stack.enter_async_context(device(server.target)) for _ in range(6)] for _ in range(crews)]
        for stub in (stub for crew in devices for stub in crew):
            # The first call makes a connection that stays.
            await stub.ListTables(pb.ListTablesRequest(), metadata=tokens[0])
        async with FaultyProxy(server.server.port):
            pass  # The event loop of production opens a file of its own with the first socket, and keeps it.
        yield House(store, broker, bus, replica, server, tuple(map(tuple, devices)), tokens)
    await replica.stop()
    await bus.close()


@asynccontextmanager
async def device(target: str) -> AsyncIterator[Stub]:
    """A connection of its own to a table service."""
    async with grpc.aio.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield rpc.TableServiceStub(channel)


async def _all_doors_open(broker: Broker) -> bool:
    return all(
        broker.servers.get(door(shard)) for shard in range(SHARDS) for door in (subjects.command, subjects.moves)
    )


def _metadata(player: str) -> tuple[tuple[str, str]]:
    return (("authorization", f"Bearer {token(player)}"),)


def census(at: House) -> dict[str, int]:
    """The number of everything that a table might leave behind."""
    gc.collect()
    objects = gc.get_objects()
    engine, limits = at.replica.engine, next(one for one in objects if isinstance(one, Limits))
    kinds = Counter(map(type, objects))
    counted = {kind.__name__: kinds[kind] for kind in _COUNTED}
    counted |= Counter(_name(one) for one in objects if isinstance(one, asyncio.Task))
    return counted | {
        "timers": sum(type(one).__name__ == "TimerHandle" and not one.cancelled() for one in objects),
        "files": sum(1 for _ in Path("/dev/fd").iterdir()),
        "threads": threading.active_count(),
        "streams in the log": at.store.unfinished,
        "tables held": len(engine.tables),
        "deadlines armed": len(engine.deadlines),
        "deadlines being fired": len(engine.deadlines._firing),
        "facts waiting": len(engine.outbox._waiting),
        "tables parked": len(engine.outbox._parked),
        "doors": sum(map(len, at.broker.servers.values())),
        "listeners": sum(map(len, at.broker.listeners.values())),
        "subjects listened to": len(at.broker.listeners) + len(at.broker.patterns),
        "subscriptions": len(at.bus._running._running),
        "rooms": at.server.watchers.tables,
        "players with streams": len(limits._streams),
        "calls in flight": int(at.server.registry.get_sample_value("gouji_grpc_calls_in_flight") or 0),
    }


def _name(task: asyncio.Task[object]) -> str:
    return f"task {getattr(task.get_coro(), '__qualname__', 'of another kind')}"


def bounded(at: House) -> dict[str, int]:
    """The sizes of what remembers on purpose, up to a bound."""
    engine, objects = at.replica.engine, gc.get_objects()
    meters = [one for one in objects if isinstance(one, Meter)]
    return {
        "objects": len(objects),
        "queue of deadlines": len(engine.deadlines._queue),
        "tables of which the last fact is known": len(engine.outbox._last),
        "callers metered": sum(len(one._buckets) for one in meters),
        "metrics": _samples(at.replica.registry) + _samples(at.server.registry),
    }


def _samples(registry: CollectorRegistry) -> int:
    return sum(len(family.samples) for family in registry.collect())


def rss_mb() -> float:
    """Resident memory, MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def left_behind(at: House, base: dict[str, int], within_s: float = 10.0) -> dict[str, int]:
    """How much more there is than there was, when it has had time to go."""
    ends_at = time.monotonic() + within_s
    while left := {name: now - base.get(name, 0) for name, now in census(at).items() if now > base.get(name, 0)}:
        if time.monotonic() > ends_at:
            break
        await asyncio.sleep(0.1)
    return left
