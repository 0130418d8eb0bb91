import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from engine.runtime import subjects
from engine.runtime.bus import BusUnavailable, Message, NoResponders, RequestHandler, Subscription
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.service.doors import Doors


class FlakyBus(MemoryBus):
    """A bus that cannot be reached for a while, and that takes its time to open a door."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.unreachable = 0
        self.slowness = 0.0

    async def serve(self, subject: str, handler: RequestHandler, *, in_flight: int = 1024) -> Subscription:
        await asyncio.sleep(self.slowness)
        if self.unreachable:
            self.unreachable -= 1
            raise BusUnavailable
        return await super().serve(subject, handler, in_flight=in_flight)


class Hall:
    """Doors behind which somebody says the name of the subject."""

    def __init__(self) -> None:
        self.bus = FlakyBus(Broker())
        self.hold = 0.0
        self.doors = Doors(self.bus, {subjects.command: self.answer, subjects.history: self.answer})

    async def answer(self, message: Message) -> bytes:
        await asyncio.sleep(self.hold)
        return message.subject.encode()

    async def opens(self, shard: int) -> bool:
        """Whether both doors of the shard are open."""
        try:
            for subject in (subjects.command(shard), subjects.history(shard)):
                await self.bus.request(subject, b"", timeout=1)
        except NoResponders:
            return False
        return True


@pytest.fixture
async def hall() -> AsyncIterator[Hall]:
    hall = Hall()
    running = asyncio.create_task(hall.doors.run())
    yield hall
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_only_the_doors_of_shards_that_are_led_are_open(hall: Hall) -> None:
    hall.doors.gained([3])
    await asyncio.sleep(0.05)

    assert await hall.opens(3)
    assert not await hall.opens(4)


async def test_the_doors_of_a_lost_shard_close(hall: Hall) -> None:
    hall.doors.gained([3])
    await asyncio.sleep(0.05)

    hall.doors.lost([3])
    await asyncio.sleep(0.01)

    assert not await hall.opens(3)


async def test_doors_stay_shut_while_the_bus_is_out_of_reach_and_open_afterwards(hall: Hall) -> None:
    hall.bus.unreachable = 3
    hall.doors.gained(range(5))
    await asyncio.sleep(2.5)

    assert all([await hall.opens(shard) for shard in range(5)])


async def test_a_shard_lost_while_its_doors_are_being_opened_has_them_closed(hall: Hall) -> None:
    hall.bus.slowness = 0.05
    hall.doors.gained([3])
    await asyncio.sleep(0.07)

    hall.doors.lost([3])
    await asyncio.sleep(0.2)

    assert not await hall.opens(3)


async def test_a_shard_lost_and_gained_again_has_its_doors_open(hall: Hall) -> None:
    hall.bus.slowness = 0.02
    hall.doors.gained([3])
    await asyncio.sleep(0.03)
    hall.doors.lost([3])
    hall.doors.gained([3])
    await asyncio.sleep(0.3)

    assert await hall.opens(3)


async def test_a_clean_stop_waits_for_what_is_under_way(hall: Hall) -> None:
    hall.doors.gained([3])
    await asyncio.sleep(0.05)
    hall.hold = 0.2
    asked = asyncio.create_task(hall.bus.request(subjects.command(3), b"", timeout=1))
    await asyncio.sleep(0.05)

    await hall.doors.close()

    assert asked.done()
    assert await asked == subjects.command(3).encode()
    assert not await hall.opens(3)
