"""Short tables on an engine and a table service in this process, and a count of everything that they might leave behind.

Law: every table ends, each kind in another way. The store forgets what is closed, as an archive does, so that memory can
come back to where it was; everything else is what runs in production.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

import grpc
from gouji.engine.v1 import engine_pb2
from gouji.game.v1 import action_pb2, variant_pb2
from gouji.table.v1 import table_pb2 as pb
from gouji.table.v1 import table_pb2_grpc as rpc

from engine.runtime import subjects
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.desk import Desk
from engine.runtime.facts_memory import FactLog
from engine.runtime.limits import Meter
from engine.runtime.running import Running
from engine.runtime.streams import STREAMS
from engine.runtime.uuid7 import uuid7
from engine.service.table import Table
from engine.store.memory import MemoryEventStore
from engine.store.port import SHARDS
from services.table.engine_client import Patience
from services.table.feeds import Feed
from services.table.limits import Limits
from services.table.rooms import Room
from services.table.streams import Stream
from tests.support.engine_bench import Callers, Replica, chosen, eventually, start
from tests.support.table_server import TableServer, table_server, token

PEOPLE = 600
"""Players who come again and again."""
_FACTS_KEPT = 1_000
_TABLES_KEPT = 20
_FOR_TWELVE_KINGS = "{3:16,4:16,5:16,6:16,7:16,8:16,9:16,T:16,J:16,Q:16,K:4,A:16,2:16,s:4,b:4}"
_COUNTED = (Table, Room, Feed, Stream, Running, Desk, asyncio.Task)

Play = grpc.aio.StreamStreamCall[pb.PlayRequest, pb.PlayResponse]


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
    """What runs, and a channel on which everybody calls."""

    store: Forgetful
    broker: Broker
    bus: MemoryBus
    replica: Replica
    server: TableServer
    stub: rpc.TableServiceAsyncStub
    tokens: tuple[tuple[tuple[str, str]], ...]


@asynccontextmanager
async def house() -> AsyncIterator[House]:
    """Run an engine and a table service for a while."""
    store = Forgetful()
    broker = Broker(logs={one.name: FactLog(replace(one, max_messages=_FACTS_KEPT)) for one in STREAMS})
    bus = MemoryBus(broker)
    replica = await start(store, bus)
    await eventually(partial(_all_doors_open, broker))
    async with table_server(bus, patience=Patience()) as server, grpc.aio.insecure_channel(server.target) as channel:
        tokens = tuple(_metadata(f"player{number}") for number in range(PEOPLE))
        stub = rpc.TableServiceStub(channel)
        # The first call makes a connection that stays.
        await stub.ListTables(pb.ListTablesRequest(), metadata=tokens[0])
        yield House(store, broker, bus, replica, server, stub, tokens)
    await replica.stop()
    await bus.close()


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
    alive = {kind.__name__: sum(type(one) is kind for one in objects) for kind in _COUNTED}
    return alive | {
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
        "rooms": at.server.watchers.tables,
        "players with streams": len(limits._streams),
        "calls in flight": int(at.server.registry.get_sample_value("gouji_grpc_calls_in_flight") or 0),
    }


def bounded(at: House) -> dict[str, int]:
    """The sizes of what remembers on purpose, up to a bound."""
    engine, meters = at.replica.engine, [one for one in gc.get_objects() if isinstance(one, Meter)]
    return {
        "queue of deadlines": len(engine.deadlines._queue),
        "tables of which the last fact is known": len(engine.outbox._last),
        "callers metered": sum(len(one._buckets) for one in meters),
        "metrics": sum(len(family.samples) for family in at.replica.registry.collect()),
    }


def rss_mb() -> float:
    """Resident memory, MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def left_behind(at: House, base: dict[str, int], within_s: float = 10.0) -> dict[str, int]:
    """How much more there is than there was, when it has had time to go."""
    ends_at = time.monotonic() + within_s
    while left := {name: now - base[name] for name, now in census(at).items() if now > base[name]}:
        if time.monotonic() > ends_at:
            break
        await asyncio.sleep(0.1)
    return left


async def short_table(at: House, number: int) -> None:
    """Play a table; `number` says who sits there and how it ends."""
    await _KINDS[number % len(_KINDS)](_Six(at, number))


async def engine_table(at: House, number: int) -> None:
    """Open a table for six, have it dealt and closed, without a table service; every other one is never dealt."""
    callers = Callers(at.bus)
    await callers.open_with_six()
    if number % 2:
        await callers.all_ready()
    await _closed(callers)


async def _closed(callers: Callers) -> None:
    house_ = engine_pb2.House(kind=engine_pb2.House.KIND_CLOSE, reason="enough")
    _accepted((await callers.send("admin", house=house_)).outcome)


class _Six:
    """Six players at a table of theirs."""

    def __init__(self, at: House, number: int) -> None:
        self.at = at
        self.who = [at.tokens[(number * 6 + seat) % PEOPLE] for seat in range(6)]
        self.table_id = ""

    async def open(self, *switches: str) -> None:
        opening = pb.OpenTableRequest(
            command_id=str(uuid7()),
            variant_key="qingdao-charter",
            switches=switches,
            deals=1,
            seating=variant_pb2.SEATING_CHOSEN_TEAMS,
        )
        opened = await self.at.stub.OpenTable(opening, metadata=self.who[0])
        self.table_id = opened.table_id

    async def sit(self, seats: range) -> None:
        for seat in seats:
            request = pb.TakeSeatRequest(table_id=self.table_id, command_id=str(uuid4()), seat=seat)
            _accepted((await self.at.stub.TakeSeat(request, metadata=self.who[seat])).outcome)

    async def ready(self) -> None:
        for who in self.who:
            request = pb.SetReadyRequest(table_id=self.table_id, command_id=str(uuid4()), ready=True)
            _accepted((await self.at.stub.SetReady(request, metadata=who)).outcome)

    @asynccontextmanager
    async def streams(self, stub: rpc.TableServiceAsyncStub) -> AsyncIterator[list[Play]]:
        """Each player's Play stream, begun; they are cancelled at the end, if they have not ended yet."""
        calls: list[Play] = [stub.Play(metadata=who) for who in self.who]
        try:
            for call in calls:
                await call.write(pb.PlayRequest(join=pb.Join(table_id=self.table_id)))
                await call.read()
            yield calls
        finally:
            for call in calls:
                call.cancel()

    async def stay(self, calls: list[Play]) -> None:
        """Nobody revolts: each answers on his stream, and reads until his answer is there."""
        for call in calls:
            action = action_pb2.Action(kind=action_pb2.ACTION_KIND_STAY)
            await call.write(pb.PlayRequest(move=pb.Move(command_id=str(uuid4()), action=action)))
            while not _is_answer(await call.read()):
                pass

    async def act(self) -> None:
        """Whoever may act does so once, by a call of its own."""
        for who in self.who:
            view = (await self.at.stub.GetView(pb.GetViewRequest(table_id=self.table_id), metadata=who)).view
            if action := chosen(view.private):
                request = pb.ActRequest(table_id=self.table_id, command_id=str(uuid4()), action=action)
                _accepted((await self.at.stub.Act(request, metadata=who)).outcome)
                return

    async def close(self) -> None:
        await _closed(Callers(self.at.bus, UUID(self.table_id)))


def _is_answer(read: object) -> bool:
    assert isinstance(read, pb.PlayResponse), read
    return read.HasField("answer")


def _accepted(outcome: pb.Outcome) -> None:
    assert outcome.HasField("accepted"), outcome


async def _closed_in_the_deal(six: _Six) -> None:
    """Six play for a while on their streams, the house closes the table, and they go without a word."""
    await six.open()
    await six.sit(range(6))
    async with six.streams(six.at.stub) as calls:
        await six.ready()
        await six.stay(calls)
        await six.act()
        await six.act()
        await six.close()


async def _left_politely(six: _Six) -> None:
    """As before, but all say goodbye while the deal runs, and read to the end."""
    await six.open()
    await six.sit(range(6))
    async with six.streams(six.at.stub) as calls:
        await six.ready()
        await six.stay(calls)
        for call in calls:
            await call.done_writing()
            while await call.read() is not grpc.aio.EOF:
                pass
    await six.close()


async def _never_full(six: _Six) -> None:
    """Three sit down, one of them twice on a stream, somebody watches, and the house closes the table."""
    await six.open()
    await six.sit(range(3))
    request = pb.WatchRequest(table_id=six.table_id)
    watching = [six.at.stub.Watch(request, metadata=who) for who in (six.who[0], six.who[0], six.who[5])]
    for call in watching:
        await call.read()
    await six.close()
    for call in watching:
        call.cancel()


async def _connection_lost(six: _Six) -> None:
    """The connection of all six breaks while they play."""
    await six.open()
    await six.sit(range(6))
    async with AsyncExitStack() as stack:
        channel = grpc.aio.insecure_channel(six.at.server.target)
        stack.push_async_callback(channel.close)
        with suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
            async with six.streams(rpc.TableServiceStub(channel)) as calls:
                await six.ready()
                await six.stay(calls)
                await channel.close()
    await six.close()


async def _played_to_the_end(six: _Six) -> None:
    """Twelve kings are played out, watched by all; an unknown table is asked for, and a seat taken twice."""
    await six.open(f"deck={_FOR_TWELVE_KINGS}", "revolution=no")
    await six.sit(range(6))
    async with six.streams(six.at.stub):
        await six.ready()
        await Callers(six.at.bus, UUID(six.table_id)).play()
    for table_id in (str(uuid7()), six.table_id):
        with suppress(grpc.aio.AioRpcError):
            request = pb.TakeSeatRequest(table_id=table_id, command_id=str(uuid4()))
            await six.at.stub.TakeSeat(request, metadata=six.who[0])


_KINDS: tuple[Callable[[_Six], Awaitable[None]], ...] = (
    _closed_in_the_deal,
    _left_politely,
    _never_full,
    _connection_lost,
    _played_to_the_end,
)
KINDS = len(_KINDS)
