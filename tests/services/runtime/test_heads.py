"""What a consumer lacks is counted, though the server's own lag is zero."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import pytest
from prometheus_client import CollectorRegistry
from psycopg_pool import AsyncConnectionPool

from engine.runtime import subjects
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.heads import Heads


class House:
    """Three sources on a bus, and the positions of a consumer."""

    def __init__(self, pool: AsyncConnectionPool) -> None:
        self.pool = pool
        self.registry = CollectorRegistry()
        self.bus = MemoryBus(Broker())
        self.heads = Heads(pool, self.bus, subjects.FACTS, self.registry, "test")
        self.sources = [subjects.fact(uuid4()) for _ in range(3)]

    async def publish(self, source: str) -> None:
        await self.bus.publish_fact(source, b"", event_id=uuid4().hex)

    async def stand(self, lasts: Sequence[int]) -> None:
        async with self.pool.connection() as connection:
            await connection.execute("delete from inbox")
            for source, last in zip(self.sources, lasts, strict=True):
                await connection.execute("insert into inbox (source, last) values (%s, %s)", (source, last))

    def behind(self) -> float | None:
        return self.registry.get_sample_value("gouji_test_intake_behind_sources")


@pytest.fixture
async def house(ranking_pool: AsyncConnectionPool) -> House:
    house = House(ranking_pool)
    for source in house.sources * 2:
        await house.publish(source)
    return house


async def test_who_has_taken_everything_is_not_behind(house: House) -> None:
    await house.stand([2, 2, 2])

    for _ in range(3):
        await house.heads.look()

    assert house.behind() == 0


async def test_who_has_lost_its_newest_positions_is_behind_from_the_second_look_on(house: House) -> None:
    await house.stand([2, 1, 2])
    async with house.pool.connection() as connection:
        await connection.execute("delete from inbox where source = %s", (house.sources[2],))

    await house.heads.look()
    assert house.behind() == 0
    await house.heads.look()

    assert house.behind() == 2


async def test_what_is_on_its_way_is_not_behind(house: House) -> None:
    await house.stand([1, 1, 1])
    for last in (2, 3, 4):
        await house.heads.look()
        for source in house.sources:
            await house.publish(source)
        await house.stand([last, last, last])
        await house.heads.look()
        assert house.behind() == 0


async def test_who_knows_more_than_the_bus_remembers_is_not_behind(house: House) -> None:
    await house.stand([7, 7, 7])

    for _ in range(2):
        await house.heads.look()

    assert house.behind() == 0
