"""What very many short tables leave behind in one engine and one table service: counted things, and memory.

Law: everything runs in this process, on a store that forgets. `GOUJI_BENCH_TABLES` says how many tables; results that
matter are kept in `tests/chaos/results.md`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable

import pytest

from tests.support import short_tables
from tests.support.short_tables import KINDS, House

TABLES = int(os.environ.get("GOUJI_BENCH_TABLES", "1000"))
LAPS = 10
AT_ONCE = 10
WARM = 10 * KINDS
ROOM_MB = 32.0
"""What may be remembered on purpose: the shapes of sets, texts of hands, digests of names, tables' last facts, callers."""

Table = Callable[[House, int], Awaitable[None]]


async def play(house: House, table: Table, tables: int) -> None:
    """So many tables, some at once."""
    numbers = iter(range(tables))

    async def one_after_another() -> None:
        for number in numbers:
            await table(house, number)

    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("table", [short_tables.short_table, short_tables.engine_table])
async def test_memory_and_counts_come_back(table: Table) -> None:
    rss: list[float] = []
    async with short_tables.house() as house:
        base = short_tables.census(house)
        for lap in range(LAPS + 1):
            began, tables = time.perf_counter(), TABLES // LAPS if lap else WARM
            await play(house, table, tables)
            rate = tables / (time.perf_counter() - began)
            left = await short_tables.left_behind(house, base)
            rss.append(short_tables.rss_mb())
            row = (lap * TABLES // LAPS, round(rate, 1), round(rss[-1], 1), left, short_tables.bounded(house))
            print(table.__name__, *row, flush=True)  # noqa: T201 - whoever runs a benchmark wants to see it

    assert left == {}
    assert rss[-1] - rss[0] < ROOM_MB
