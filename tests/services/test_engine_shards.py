import asyncio
from collections.abc import Collection
from functools import partial

import pytest

from engine.runtime.clock import ManualClock, SystemClock
from engine.service.shards import LeaseTerms, Shards
from engine.store.memory import MemoryEventStore
from engine.store.port import SHARDS
from tests.support.engine_bench import eventually
from tests.support.faulty_store import FaultyStore

TERMS = LeaseTerms(ttl_ms=6000, renew_ms=2000)


class Notes:
    """A follower that keeps a list."""

    def __init__(self) -> None:
        self.led: set[int] = set()

    def gained(self, shards: Collection[int]) -> None:
        self.led.update(shards)

    def lost(self, shards: Collection[int]) -> None:
        assert self.led.issuperset(shards)
        self.led.difference_update(shards)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> FaultyStore:
    return FaultyStore(MemoryEventStore(lambda: round(clock.monotonic() * 1000)))


def replica(store: FaultyStore, clock: ManualClock, name: str) -> tuple[Shards, Notes]:
    shards, notes = Shards(store, clock, name, TERMS), Notes()
    shards.follow([notes])
    return shards, notes


async def leads_all(shards: Shards) -> bool:
    return len(shards.held()) == SHARDS


async def test_one_replica_leads_every_shard(store: FaultyStore, clock: ManualClock) -> None:
    shards, notes = replica(store, clock, "a")

    await shards.keep()

    assert notes.led == set(range(SHARDS)) == set(shards.held())


async def test_two_replicas_share_the_shards_evenly_and_no_shard_has_two_leaders(
    store: FaultyStore, clock: ManualClock
) -> None:
    (a, led_by_a), (b, led_by_b) = replica(store, clock, "a"), replica(store, clock, "b")

    for _ in range(3):
        await a.keep()
        await b.keep()
        await clock.advance(2)

    assert len(led_by_a.led) == len(led_by_b.led) == SHARDS // 2
    assert not led_by_a.led & led_by_b.led


async def test_the_shards_of_a_dead_replica_are_taken_over_when_its_lease_has_run_out(
    store: FaultyStore, clock: ManualClock
) -> None:
    (a, _), (b, led_by_b) = replica(store, clock, "a"), replica(store, clock, "b")
    await a.keep()
    term = a.term(7)

    await clock.advance(6.1)
    await b.keep()

    successor = b.term(7)
    assert len(led_by_b.led) == SHARDS
    assert term is not None
    assert successor is not None
    assert successor.epoch > term.epoch


async def test_a_replica_that_was_paused_beyond_its_lease_leads_nothing_when_it_wakes(
    store: FaultyStore, clock: ManualClock
) -> None:
    shards, _ = replica(store, clock, "a")
    await shards.keep()
    term = shards.term(7)
    assert term is not None
    assert term.lasts()

    await clock.advance(6)

    assert not term.lasts()
    assert shards.term(7) is None
    assert shards.held() == ()


async def test_a_store_out_of_reach_costs_the_shards_when_the_lease_has_run_out_and_not_before(
    store: FaultyStore, clock: ManualClock
) -> None:
    shards, notes = replica(store, clock, "a")
    await shards.keep()
    store.is_down = True

    await clock.advance(2)
    await shards.keep()
    assert len(notes.led) == SHARDS

    await clock.advance(4)
    await shards.keep()
    assert notes.led == set()


async def test_a_break_in_reaching_the_store_makes_the_term_unsteady_until_then(
    store: FaultyStore, clock: ManualClock
) -> None:
    shards, _ = replica(store, clock, "a")
    await shards.keep()
    term = shards.term(7)
    assert term is not None
    began_at = term.steady_since_ms()

    await clock.advance(2)
    store.is_down = True
    await shards.keep()

    assert term.steady_since_ms() == began_at + 2000


async def test_a_clean_stop_hands_over_at_once(store: FaultyStore, clock: ManualClock) -> None:
    (a, led_by_a), (b, led_by_b) = replica(store, clock, "a"), replica(store, clock, "b")
    await a.keep()

    await a.release()
    await b.keep()

    assert led_by_a.led == set()
    assert len(led_by_b.led) == SHARDS


async def test_a_renewal_under_way_at_a_clean_stop_takes_nothing_back(store: FaultyStore, clock: ManualClock) -> None:
    shards, notes = replica(store, clock, "a")
    await shards.keep()
    await shards.release()

    await shards.keep()

    assert notes.led == set()


async def test_who_gives_shards_up_tells_the_others(store: FaultyStore, clock: ManualClock) -> None:
    told: list[frozenset[int]] = []

    async def tell() -> None:
        told.append(frozenset([shard for shard in range(SHARDS) if await store.leader(shard) is None]))

    shards = Shards(store, clock, "a", TERMS, tell)
    newcomer, _ = replica(store, clock, "b")
    await shards.keep()
    await newcomer.keep()
    assert told == []

    await shards.keep()
    await newcomer.keep()
    await shards.release()

    assert [len(free) for free in told] == [SHARDS // 2, SHARDS // 2]


async def test_a_replica_waits_for_the_end_of_a_lease_and_not_for_its_next_round() -> None:
    store = FaultyStore(MemoryEventStore())
    await Shards(store, SystemClock(), "dead", LeaseTerms(ttl_ms=300, renew_ms=100)).keep()
    survivor = Shards(store, SystemClock(), "alive", LeaseTerms(ttl_ms=120_000, renew_ms=60_000))

    keeping = asyncio.create_task(survivor.run())
    await eventually(partial(leads_all, survivor), within=5)

    keeping.cancel()


async def test_a_replica_that_is_told_of_free_shards_takes_them_at_once() -> None:
    store = FaultyStore(MemoryEventStore())
    far = LeaseTerms(ttl_ms=120_000, renew_ms=60_000)
    survivor = Shards(store, SystemClock(), "alive", far)

    async def tell() -> None:
        survivor.look()

    leaving = Shards(store, SystemClock(), "leaving", far, tell)
    await leaving.keep()
    keeping = asyncio.create_task(survivor.run())
    await asyncio.sleep(0.05)
    assert survivor.held() == ()

    await leaving.release()
    await eventually(partial(leads_all, survivor), within=5)

    keeping.cancel()


async def test_a_replica_that_nobody_hears_leaves_its_shards_to_one_that_is_heard(
    store: FaultyStore, clock: ManualClock
) -> None:
    (a, led_by_a), (b, led_by_b) = replica(store, clock, "a"), replica(store, clock, "b")
    hears: set[str] = {"a", "b"}
    a.lead_only_while(lambda: "a" in hears)
    for shards in (a, b, a, b):
        await shards.keep()

    hears.remove("a")
    await a.keep()
    await b.keep()
    assert led_by_a.led == set()
    assert len(led_by_b.led) == SHARDS

    hears.add("a")
    for shards in (a, b, a):
        await shards.keep()
    assert len(led_by_a.led) == len(led_by_b.led) == SHARDS // 2


async def test_a_replica_that_nobody_hears_keeps_its_shards_when_there_is_no_other(
    store: FaultyStore, clock: ManualClock
) -> None:
    shards, notes = replica(store, clock, "a")
    shards.lead_only_while(lambda: False)

    await shards.keep()
    await shards.keep()

    assert len(notes.led) == SHARDS
