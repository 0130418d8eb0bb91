"""Time and the ids that are made of it."""

from __future__ import annotations

import asyncio
import time

from engine.runtime.clock import ManualClock, SystemClock
from engine.runtime.uuid7 import made_at_ms, uuid7


async def test_a_manual_clock_wakes_sleepers_at_their_own_times() -> None:
    clock, woken = ManualClock(now_ms=1_000), list[tuple[str, int]]()

    async def sleep(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.now_ms()))

    async with asyncio.TaskGroup() as sleepers:
        for name, seconds in (("late", 3), ("early", 1), ("also late", 3)):
            sleepers.create_task(sleep(name, seconds))
        await asyncio.sleep(0)
        await clock.advance(2)
        assert woken == [("early", 2_000)]
        await clock.advance(2)

    assert woken == [("early", 2_000), ("late", 4_000), ("also late", 4_000)]
    assert clock.monotonic() == 4


async def test_who_sleeps_again_is_woken_again_within_one_move() -> None:
    clock, times = ManualClock(), 0

    async def tick() -> None:
        nonlocal times
        while True:
            await clock.sleep(1)
            times += 1

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    await clock.advance(5)
    ticking.cancel()

    assert times == 5


async def test_the_systems_clock_tells_the_time_and_waits() -> None:
    clock = SystemClock()
    before = clock.monotonic()

    await clock.sleep(0.01)

    assert clock.monotonic() - before >= 0.009
    assert abs(clock.now_ms() - time.time() * 1000) < 1000


def test_an_id_is_a_version_7_uuid_of_its_millisecond() -> None:
    made = uuid7(1_700_000_000_123)

    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert made_at_ms(made) == 1_700_000_000_123


def test_an_id_is_determined_by_time_and_randomness() -> None:
    assert str(uuid7(0x0123456789AB, lambda count: b"\xff" * count)) == "01234567-89ab-7fff-bfff-ffffffffffff"
    assert str(uuid7(0x0123456789AB, bytes)) == "01234567-89ab-7000-8000-000000000000"


def test_ids_sort_by_the_time_they_were_made() -> None:
    ids = [uuid7(at_ms) for at_ms in range(1_700_000_000_000, 1_700_000_000_100)]

    assert ids == sorted(ids)


def test_every_value_of_the_last_byte_is_met() -> None:
    assert len({uuid7(0).bytes[15] for _ in range(20_000)}) == 256
