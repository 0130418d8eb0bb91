import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import UUID, uuid4

import pytest

from engine.runtime.clock import SystemClock
from engine.runtime.uuid7 import uuid7
from engine.service.deadlines import Deadlines
from engine.service.shards import LeaseTerms, Shards
from engine.store.memory import MemoryEventStore
from engine.store.port import Append, Deadline, NewEvent, shard_of

TABLE = uuid7()


class Fired:
    """Who was fired."""

    def __init__(self) -> None:
        self.all: list[tuple[UUID, Deadline]] = []

    async def __call__(self, table_id: UUID, deadline: Deadline) -> None:
        self.all.append((table_id, deadline))


@pytest.fixture
async def shards() -> Shards:
    shards = Shards(MemoryEventStore(), SystemClock(), "a", LeaseTerms())
    await shards.keep()
    return shards


@asynccontextmanager
async def running(deadlines: Deadlines, fired: Fired) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(deadlines.run(fired)), asyncio.create_task(deadlines.keep_sweeping())]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def always() -> None:
    """In earshot."""


def deadlines_of(shards: Shards, store: MemoryEventStore | None = None) -> Deadlines:
    return Deadlines(store or MemoryEventStore(), SystemClock(), shards, sweep_ms=20, in_earshot=always)


def soon(ms: int = 50, since: int = 1) -> Deadline:
    return Deadline(SystemClock().now_ms() + ms, since)


async def test_a_deadline_fires_once_at_its_time_and_not_before(shards: Shards) -> None:
    deadlines, fired = deadlines_of(shards), Fired()
    async with running(deadlines, fired):
        deadline = soon(100)
        deadlines.arm(TABLE, deadline)
        deadlines.arm(TABLE, deadline)
        await asyncio.sleep(0.05)
        assert fired.all == []
        await asyncio.sleep(0.15)

    assert fired.all == [(TABLE, deadline)]


async def test_a_newer_deadline_replaces_the_older_one(shards: Shards) -> None:
    deadlines, fired = deadlines_of(shards), Fired()
    newer = soon(80, since=2)
    async with running(deadlines, fired):
        deadlines.arm(TABLE, soon(40, since=1))
        deadlines.arm(TABLE, newer)
        await asyncio.sleep(0.2)

    assert fired.all == [(TABLE, newer)]


async def test_an_earlier_deadline_of_another_table_does_not_wait_for_the_later_one(shards: Shards) -> None:
    deadlines, fired = deadlines_of(shards), Fired()
    async with running(deadlines, fired):
        deadlines.arm(TABLE, soon(60_000))
        await asyncio.sleep(0)
        deadlines.arm(uuid7(), soon(20))
        await asyncio.sleep(0.15)

    assert len(fired.all) == 1


async def test_a_disarmed_deadline_does_not_fire(shards: Shards) -> None:
    deadlines, fired = deadlines_of(shards), Fired()
    async with running(deadlines, fired):
        deadlines.arm(TABLE, soon(30))
        deadlines.arm(TABLE, None)
        await asyncio.sleep(0.1)

    assert fired.all == []
    assert len(deadlines) == 0


async def test_the_deadlines_of_a_lost_shard_do_not_fire(shards: Shards) -> None:
    deadlines, fired = deadlines_of(shards), Fired()
    async with running(deadlines, fired):
        deadlines.arm(TABLE, soon(30))
        deadlines.lost([shard_of(TABLE)])
        await asyncio.sleep(0.1)

    assert fired.all == []


async def test_a_new_leader_finds_the_deadlines_of_tables_that_it_has_not_loaded(shards: Shards) -> None:
    store, deadline, fired = MemoryEventStore(), soon(50), Fired()
    await store.append(
        Append(TABLE, 0, 1, uuid4(), "house", 0, (NewEvent("table_opened", 1, b"x"),), deadline=deadline)
    )

    async with running(deadlines_of(shards, store), fired):
        await asyncio.sleep(0.2)

    assert (TABLE, deadline) in fired.all


async def test_deadlines_that_are_replaced_again_and_again_leave_nothing_behind(shards: Shards) -> None:
    deadlines = deadlines_of(shards)
    for since in range(20_000):
        deadlines.arm(TABLE, soon(60_000, since))

    assert len(deadlines) == 1
    assert len(deadlines._queue) < 2000


async def test_thousands_of_deadlines_at_once_are_all_fired_and_leave_nothing_behind(shards: Shards) -> None:
    deadlines, fired = deadlines_of(shards), Fired()
    async with running(deadlines, fired):
        for _ in range(3000):
            deadlines.arm(uuid7(), soon(30))
        await asyncio.sleep(0.6)

    assert len(fired.all) == 3000
    assert len(deadlines) == 0


async def test_no_deadline_fires_out_of_earshot(shards: Shards) -> None:
    heard = asyncio.Event()

    async def in_earshot() -> None:
        await heard.wait()

    deadlines, fired = Deadlines(MemoryEventStore(), SystemClock(), shards, 20, in_earshot), Fired()
    async with running(deadlines, fired):
        deadline = soon(20)
        deadlines.arm(TABLE, deadline)
        await asyncio.sleep(0.1)
        assert fired.all == []

        heard.set()
        await asyncio.sleep(0.1)

    assert fired.all == [(TABLE, deadline)]
