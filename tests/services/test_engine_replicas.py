import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from uuid import uuid4

import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import view_pb2

from engine.runtime import subjects
from engine.runtime.bus import Bus, RequestTimedOut
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.uuid7 import uuid7
from engine.store.memory import MemoryEventStore
from engine.store.port import SHARDS, Append, EventStore, NewEvent, NotTheLeader, shard_of
from engine.store.postgres import PostgresEventStore
from tests.support.engine_bench import AUDIENCES, PLAYERS, Callers, Replica, accepted, eventually, forms, start


class Site:
    """A store and a bus that several engines share."""

    def __init__(self, store: EventStore, connect: Callable[[], Awaitable[Bus]]) -> None:
        self.store = store
        self.connect = connect
        self.replicas: list[Replica] = []
        self.buses: list[Bus] = []

    async def engine(self, name: str) -> Replica:
        replica = await start(self.store, await self.bus(), name)
        self.replicas.append(replica)
        return replica

    async def bus(self) -> Bus:
        self.buses.append(await self.connect())
        return self.buses[-1]

    async def callers(self) -> Callers:
        return Callers(await self.bus(), uuid7())

    async def close(self) -> None:
        for replica in self.replicas:
            await replica.stop()
        for bus in self.buses:
            await bus.close()


@pytest.fixture(params=["memory", "servers"])
async def site(request: pytest.FixtureRequest, database: str, nats_url: str) -> AsyncIterator[Site]:
    if request.param == "memory":
        broker = Broker()

        async def connect() -> Bus:
            return MemoryBus(broker)

        site = Site(MemoryEventStore(), connect)
    else:
        store = await PostgresEventStore.open(database)
        site = Site(store, lambda: NatsBus.connect(NatsOptions((nats_url,))))
    yield site
    await site.close()
    await site.store.close()


async def share_evenly(*replicas: Replica) -> None:
    """Wait until the replicas share the shards."""

    async def is_even() -> bool:
        return all(len(one.engine.shards.held()) == SHARDS // len(replicas) for one in replicas)

    await eventually(is_even)


async def test_a_match_is_played_and_every_audience_saw_every_version(site: Site) -> None:
    await site.engine("a")
    callers = await site.callers()
    await callers.watch()
    await callers.open_with_six()
    await callers.all_ready()

    await callers.play()

    assert await callers.is_in(view_pb2.TABLE_PHASE_FINISHED)
    last = (await site.store.head(callers.table_id)).version
    await eventually(lambda: _all_have(callers, last))
    for audience in AUDIENCES:
        assert sorted(forms(callers.shown[audience])) == list(range(1, last + 1))


async def _all_have(callers: Callers, version: int) -> bool:
    return all(version in forms(callers.shown[audience]) for audience in AUDIENCES)


async def test_two_replicas_share_the_shards_and_tables_of_both_are_played(site: Site) -> None:
    a, b = await site.engine("a"), await site.engine("b")
    await share_evenly(a, b)
    tables = [await site.callers() for _ in range(6)]

    for callers in tables:
        await callers.open_with_six()
        await callers.all_ready()
        assert await callers.play(8) == 8

    assert not set(a.engine.shards.held()) & set(b.engine.shards.held())


async def test_another_replica_takes_over_after_a_crash_and_nothing_acknowledged_is_missing(site: Site) -> None:
    a = await site.engine("a")
    callers = await site.callers()
    await callers.open_with_six()
    await callers.all_ready()
    await callers.play(10)
    await a.crash()
    began = asyncio.get_running_loop().time()

    await site.engine("b")
    assert await callers.play(10) == 10

    assert asyncio.get_running_loop().time() - began < 10
    for command_id, version in callers.acknowledged.items():
        stored = await site.store.find_command(callers.table_id, command_id)
        assert stored is not None
        assert stored.version == version


async def test_a_clean_stop_hands_over_at_once_and_play_goes_on(site: Site) -> None:
    a, b = await site.engine("a"), await site.engine("b")
    await share_evenly(a, b)
    callers = await site.callers()
    await callers.open_with_six()
    await callers.all_ready()

    playing = asyncio.create_task(callers.play(30))
    await asyncio.sleep(0.1)
    leader, other = (a, b) if shard_of(callers.table_id) in a.engine.shards.held() else (b, a)
    began = asyncio.get_running_loop().time()
    await leader.stop()
    await eventually(lambda: _leads(other, callers), within=5)

    assert asyncio.get_running_loop().time() - began < 5
    assert await playing == 30


async def _leads(replica: Replica, callers: Callers) -> bool:
    return shard_of(callers.table_id) in replica.engine.shards.held()


async def test_a_leader_that_lost_its_lease_appends_nothing_more(site: Site) -> None:
    a = await site.engine("a")
    callers = await site.callers()
    await callers.open_with_six()
    head = await site.store.head(callers.table_id)
    await a.crash()
    await site.engine("b")
    await callers.view("anna")

    late = Append(callers.table_id, head.version, head.epoch, uuid4(), "a", 0, (NewEvent("x", 1, b""),), deadline=None)

    with pytest.raises(NotTheLeader):
        await site.store.append(late)
    assert (await site.store.head(callers.table_id)).version == head.version


async def test_a_replica_whose_lease_ran_out_neither_answers_nor_shows(site: Site) -> None:
    a = await site.engine("a")
    callers = await site.callers()
    await callers.watch()
    await callers.open_with_six()
    await eventually(lambda: _all_have(callers, 2))
    shown = len(callers.shown["public"])
    a.engine.shards._until = 0.0
    a.engine.shards._stopping = True

    request = engine.CommandRequest(
        table_id=str(callers.table_id),
        command_id=str(uuid4()),
        caller=engine.Caller(player_id=PLAYERS[0]),
        set_ready=engine.SetReady(ready=True),
    )
    subject = subjects.command(shard_of(callers.table_id))
    reply = engine.CommandReply()
    with suppress(RequestTimedOut):
        reply = engine.CommandReply.FromString(await callers.ask_once(subject, request.SerializeToString()))

    assert reply.fault == engine.FAULT_UNAVAILABLE
    assert len(callers.shown["public"]) == shown


async def test_a_repeated_command_after_a_takeover_gets_its_first_answer(site: Site) -> None:
    a = await site.engine("a")
    callers = await site.callers()
    await callers.open_with_six()
    command_id = uuid4()
    ready = engine.SetReady(ready=True)
    first = accepted(await callers.send("anna", command_id=command_id, set_ready=ready))
    await a.crash()
    await site.engine("b")

    again = accepted(await callers.send("anna", command_id=command_id, set_ready=ready))

    assert again == first
    assert (await site.store.head(callers.table_id)).version == first
