from collections.abc import AsyncIterator

import pytest

from engine.runtime.bus_memory import Broker, MemoryBus
from engine.service.canary_client import Canary
from engine.store.memory import MemoryEventStore
from tests.support.engine_bench import Replica, eventually, start
from tests.support.faulty_store import FaultyStore


class Bench:
    """An engine and its canary."""

    def __init__(self, replica: Replica, store: FaultyStore, bus: MemoryBus) -> None:
        self.replica = replica
        self.store = store
        self.canary = Canary(bus, replica.engine.shards)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    broker, store = Broker(), FaultyStore(MemoryEventStore())
    replica = await start(store, MemoryBus(broker))
    yield Bench(replica, store, MemoryBus(broker))
    store.is_down = False
    await replica.stop()


async def test_the_canary_sings_while_the_engine_can_act(bench: Bench) -> None:
    await eventually(bench.canary.sings)


async def test_the_canary_is_silent_while_the_store_is_out_of_reach(bench: Bench) -> None:
    await eventually(bench.canary.sings)
    bench.store.is_down = True

    assert not await bench.canary.sings()


async def test_the_canary_is_silent_while_nobody_serves_or_nothing_is_led(bench: Bench) -> None:
    await bench.replica.bus.close()
    assert not await bench.canary.sings()

    await bench.replica.stop()
    assert not await bench.canary.sings()
