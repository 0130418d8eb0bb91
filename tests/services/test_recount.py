"""After a stormy while every gauge tells what a recount of the truth gives."""

from __future__ import annotations

import random
from contextlib import suppress
from uuid import UUID

import grpc
import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.table.v1 import table_pb2 as pb
from gouji.table.v1 import table_pb2_grpc as rpc

from engine import match
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.uuid7 import uuid7
from engine.store.memory import MemoryEventStore
from engine.store.port import SHARDS, StreamHead
from tests.support.engine_bench import PLAYERS, Callers, Replica, eventually, start
from tests.support.faulty_store import FaultyStore, Trouble, fine, lost_after, lost_before, unreachable
from tests.support.scripted_engine import ScriptedEngine
from tests.support.table_server import table_server
from tests.support.viewer import until

TROUBLES: tuple[Trouble, ...] = (fine, fine, fine, unreachable, lost_before, lost_after)
TABLES = 24


class Storm:
    """An engine after another on a store that breaks now and then, and tables that come, are played at and go."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.store = FaultyStore(MemoryEventStore())
        self.chance = random.Random(12)
        self.tables: list[Callers] = []

    async def engine(self, name: str) -> Replica:
        return await start(self.store, MemoryBus(self.broker), name)

    async def blow(self) -> None:
        """Let a table come, or something happen at one that is there."""
        self.store.troubles = [self.chance.choice(TROUBLES)]
        if len(self.tables) < TABLES:
            self.tables.append(Callers(MemoryBus(self.broker), answer_s=0.2))
            await self.tables[-1].open_with_six()
        callers = self.chance.choice(self.tables)
        match self.chance.randrange(4):
            case 0:
                await callers.send("admin", house=engine.House(kind=engine.House.KIND_CLOSE, reason="storm"))
            case 1:
                await callers.send(self.chance.choice(PLAYERS), set_ready=engine.SetReady(ready=True))
            case _:
                await callers.play(self.chance.randrange(3))

    async def open_streams(self) -> list[StreamHead]:
        return list(await self.store.inner.list_streams(1000))


async def test_the_engines_gauges_equal_a_recount_after_a_storm(monkeypatch: pytest.MonkeyPatch) -> None:
    storm = Storm()
    first = await storm.engine("first")
    for _ in range(40):
        await storm.blow()
    await first.crash()
    await storm.store.release_leases("first")
    replica = await storm.engine("second")
    for _ in range(40):
        await storm.blow()
    storm.store.troubles = []
    open_now = {head.table_id for head in await storm.open_streams()}
    poisoned = await _poison(storm, open_now, monkeypatch)
    for callers in storm.tables:
        if callers.table_id in open_now - poisoned:
            await callers.view("nobody")

    async def nothing_waits() -> bool:
        return not await storm.store.inner.pending_facts(range(SHARDS), 10)

    await eventually(nothing_waits)
    await eventually(lambda: _has(replica, "gouji_engine_outbox_pending", 0))
    heads = await storm.open_streams()
    armed = {head.table_id for head in heads if head.deadline is not None}
    assert len(heads) > TABLES / 4
    assert len(poisoned) == 2
    assert replica.value("gouji_engine_live_tables") == len(heads)
    assert replica.value("gouji_engine_quarantined_tables") == len(poisoned)
    assert replica.value("gouji_engine_leases_held") == SHARDS
    assert replica.engine.deadlines._armed.keys() - poisoned == armed - poisoned
    for name in ("outbox_parked_tables", "bus_holes", "bus_forks"):
        assert replica.value(f"gouji_engine_{name}") == 0
    await replica.stop()


async def _has(replica: Replica, name: str, value: float) -> bool:
    return replica.value(name) == value


async def _poison(storm: Storm, open_now: set[UUID], monkeypatch: pytest.MonkeyPatch) -> set[UUID]:
    """Let the rules break over two tables."""
    victims = [callers for callers in storm.tables if callers.table_id in open_now][:2]

    def broken(*_: object) -> match.Decision:
        raise KeyError

    with monkeypatch.context() as patch:
        patch.setattr(match, "decide", broken)
        for callers in victims:
            reply = await callers.send("anna", set_ready=engine.SetReady(ready=True))
            assert reply.fault == engine.FAULT_QUARANTINED
    return {callers.table_id for callers in victims}


async def test_the_table_services_gauges_equal_a_recount_after_many_streams() -> None:
    broker, chance = Broker(), random.Random(5)
    ids = [UUID(bytes=uuid7().bytes[:15] + bytes([shard])) for shard in range(3)]
    engines = [ScriptedEngine(MemoryBus(broker), table_id) for table_id in ids]
    for scripted in engines:
        await scripted.start()
    async with table_server(MemoryBus(broker)) as server, server.channel("zoe") as channel:
        stub: rpc.TableServiceAsyncStub = rpc.TableServiceStub(channel)
        held: list[tuple[UUID, grpc.aio.UnaryStreamCall[pb.WatchRequest, pb.WatchResponse]]] = []
        for _ in range(80):
            scripted = chance.choice(engines)
            if held and chance.random() < 0.4:
                held.pop(chance.randrange(len(held)))[1].cancel()
            elif chance.random() < 0.2:
                unknown = stub.Watch(pb.WatchRequest(table_id=str(UUID(int=scripted.table_id.int ^ 1 << 64))))
                with suppress(grpc.aio.AioRpcError):
                    await unknown.read()
            else:
                watch = stub.Watch(pb.WatchRequest(table_id=str(scripted.table_id)))
                await watch.read()
                held.append((scripted.table_id, watch))
            await scripted.happen(1)

        def told(name: str) -> float | None:
            return server.registry.get_sample_value(name)

        assert len(held) > 5
        await until(lambda: told("gouji_table_streams") == len(held))
        await until(lambda: told("gouji_table_rooms") == len({table_id for table_id, _ in held}))
        for _, watch in held:
            watch.cancel()
        await until(lambda: told("gouji_table_streams") == told("gouji_table_rooms") == 0)
    for scripted in engines:
        await scripted.stop()
