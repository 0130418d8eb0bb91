"""The promises of `engine/store/port.py` about leases, asked of every adapter."""

from __future__ import annotations

import asyncio

from engine.store.port import (
    SHARDS,
    EventStore,
)
from tests.support.adapters import FOR_EVER_MS, TTL_MS, Opened


async def test_the_only_owner_holds_what_it_wants(store: EventStore) -> None:
    leases = await store.keep_leases("a", SHARDS, FOR_EVER_MS)

    assert [lease.shard for lease in leases.held] == list(range(SHARDS))
    assert {(lease.owner, lease.epoch) for lease in leases.held} == {("a", 1)}
    assert (leases.owners, leases.lost) == (1, ())
    assert await store.leader(17) == "a"


async def test_want_bounds_the_shards_of_an_owner(store: EventStore) -> None:
    assert len((await store.keep_leases("a", 10, FOR_EVER_MS)).held) == 10

    leases = await store.keep_leases("a", 4, FOR_EVER_MS)

    assert (len(leases.held), len(leases.lost)) == (4, 6)
    assert {await store.leader(shard) for shard in leases.lost} == {None}


async def test_two_owners_share_evenly_and_no_shard_has_two_leaders(store: EventStore) -> None:
    await store.keep_leases("a", SHARDS, FOR_EVER_MS)
    empty = await store.keep_leases("b", SHARDS, FOR_EVER_MS)
    assert (empty.held, empty.owners) == ((), 2)

    mine = await store.keep_leases("a", SHARDS, FOR_EVER_MS)
    theirs = await store.keep_leases("b", SHARDS, FOR_EVER_MS)

    assert (len(mine.held), len(mine.lost), len(theirs.held)) == (128, 128, 128)
    assert {lease.shard for lease in mine.held}.isdisjoint(lease.shard for lease in theirs.held)
    assert {lease.epoch for lease in theirs.held} == {2}


async def test_three_owners_share_all_shards(store: EventStore) -> None:
    for _ in range(3):
        rounds = [await store.keep_leases(owner, SHARDS, FOR_EVER_MS) for owner in "abc"]

    held = sorted(lease.shard for leases in rounds for lease in leases.held)
    assert held == list(range(SHARDS))
    assert max(len(leases.held) for leases in rounds) == 86


async def test_owners_that_come_at_once_take_no_shard_twice(store: EventStore) -> None:
    for _ in range(3):
        rounds = await asyncio.gather(*(store.keep_leases(owner, SHARDS, FOR_EVER_MS) for owner in "abcd"))
    rounds = [await store.keep_leases(owner, SHARDS, FOR_EVER_MS) for owner in "abcd"]

    held = sorted(lease.shard for leases in rounds for lease in leases.held)
    assert held == list(range(SHARDS))


async def test_a_renewed_lease_keeps_its_epoch(opened: Opened) -> None:
    first = await opened.store.keep_leases("a", 3, TTL_MS)
    await opened.pass_ms(TTL_MS // 2)
    await opened.store.keep_leases("a", 3, TTL_MS)
    await opened.pass_ms(TTL_MS * 2 // 3)

    assert (await opened.store.keep_leases("a", 3, TTL_MS)).held == first.held
    assert await opened.store.leader(first.held[0].shard) == "a"


async def test_the_shards_of_a_dead_owner_are_taken_over_with_a_newer_epoch(opened: Opened) -> None:
    await opened.store.keep_leases("a", SHARDS, TTL_MS)
    assert not (await opened.store.keep_leases("b", SHARDS, FOR_EVER_MS)).held
    await opened.pass_ms(TTL_MS + 50)
    assert await opened.store.leader(0) is None

    taken = await opened.store.keep_leases("b", SHARDS, FOR_EVER_MS)

    assert (len(taken.held), taken.owners) == (SHARDS, 1)
    assert {lease.epoch for lease in taken.held} == {2}
    woken = await opened.store.keep_leases("a", SHARDS, TTL_MS)
    assert (woken.held, len(woken.lost)) == ((), SHARDS)


async def test_an_owner_is_told_when_the_earliest_lease_of_another_ends(opened: Opened) -> None:
    alone = await opened.store.keep_leases("a", SHARDS, TTL_MS)
    other = await opened.store.keep_leases("b", SHARDS, FOR_EVER_MS)
    await opened.pass_ms(TTL_MS + 50)
    after = await opened.store.keep_leases("b", SHARDS, FOR_EVER_MS)

    assert alone.next_end_ms is None
    assert other.next_end_ms is not None
    assert 0 < other.next_end_ms <= TTL_MS
    assert after.next_end_ms is None


async def test_a_clean_release_frees_the_shards_at_once(store: EventStore) -> None:
    await store.keep_leases("a", SHARDS, FOR_EVER_MS)

    await store.release_leases("a")
    await store.release_leases("a")

    assert await store.leader(0) is None
    taken = await store.keep_leases("b", SHARDS, FOR_EVER_MS)
    assert (len(taken.held), taken.owners) == (SHARDS, 1)
    assert {lease.epoch for lease in taken.held} == {2}


async def test_a_release_by_one_owner_leaves_the_other_alone(store: EventStore) -> None:
    for _ in range(2):
        await store.keep_leases("a", SHARDS, FOR_EVER_MS)
        kept = await store.keep_leases("b", SHARDS, FOR_EVER_MS)

    await store.release_leases("a")

    assert await store.leader(kept.held[0].shard) == "b"
