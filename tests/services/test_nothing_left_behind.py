"""Tables come and go and leave nothing behind in an engine and a table service, however they end."""

import asyncio

from tests.support import short_tables
from tests.support.short_tables import KINDS


async def test_tables_leave_nothing_behind() -> None:
    async with short_tables.house() as house:
        base = short_tables.census(house)

        for number in range(KINDS):
            await short_tables.short_table(house, number)
        await asyncio.gather(*(short_tables.short_table(house, number) for number in range(KINDS)))

        assert await short_tables.left_behind(house, base) == {}
        assert house.server.internal_errors() == 0
