"""Tables come and go and leave nothing behind in an engine and a table service, however they end."""

import asyncio

from tests.support import crowded_house, short_tables
from tests.support.short_tables import KINDS

FORGOTTEN = 4


async def test_tables_leave_nothing_behind() -> None:
    async with crowded_house.house(crews=KINDS) as house:
        base = crowded_house.census(house)

        for number in range(KINDS):
            await short_tables.table_of_each_kind(house, number)
        metrics = crowded_house.bounded(house)["metrics"]
        await asyncio.gather(*(short_tables.table_of_each_kind(house, number) for number in range(KINDS)))

        assert await crowded_house.left_behind(house, base) == {}
        assert crowded_house.bounded(house)["metrics"] == metrics
        assert house.server.internal_errors() == 0


async def test_forgotten_tables_leave_nothing_behind_once_their_time_is_over() -> None:
    async with crowded_house.house(crews=1, gathering_ms=300) as house:
        base = crowded_house.census(house)

        await asyncio.gather(*(short_tables.forgotten_table(house, number) for number in range(FORGOTTEN)))

        assert await crowded_house.left_behind(house, base) == {}
        assert house.replica.value("gouji_engine_deadlines_total", result="enforced") == FORGOTTEN
