"""What very many short tables leave behind in one engine and one table service: counted things, and memory.

Law: everything runs in this process, on the event loop of production and on a store that forgets. `GOUJI_BENCH_TABLES`
says how many tables; results that matter are kept in `tests/chaos/results.md`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import structlog
import uvloop

from engine.runtime import logs
from tests.support import crowded_house, short_tables
from tests.support.crowded_house import House

TABLES = int(os.environ.get("GOUJI_BENCH_TABLES", "1000"))
LAPS = 20
CREWS = 10
WARM = 300
GATHERING_MS = 15_000
TIME_TO_GO_S = GATHERING_MS / 1000 + 15
ROOM_MB = 32.0
"""What may be remembered on purpose: the shapes of sets, texts of hands, digests of names, tables' last facts, callers."""
ROOM_METRICS = 20
"""Samples that may come late: of results that are rare."""

Table = Callable[[House, int], Awaitable[None]]


async def play(house: House, table: Table, first: int, tables: int) -> None:
    """So many tables, by several crews at once."""
    numbers = iter(range(first, first + tables))

    async def one_after_another() -> None:
        for number in numbers:
            await table(house, number)

    await asyncio.gather(*(one_after_another() for _ in range(CREWS)))


async def come_back(table: Table) -> None:
    """Play in laps; after each everything that is counted must be gone, and in the end memory must not have grown."""
    rss: list[float] = []
    metrics: list[int] = []
    async with crowded_house.house(CREWS, GATHERING_MS) as house:
        base, played = crowded_house.census(house), 0
        for tables in (WARM, *[TABLES // LAPS] * LAPS):
            began = time.perf_counter()
            await play(house, table, played, tables)
            rate, played = tables / (time.perf_counter() - began), played + tables
            left = await crowded_house.left_behind(house, base, TIME_TO_GO_S)
            rss.append(crowded_house.rss_mb())
            remembered = crowded_house.bounded(house)
            metrics.append(remembered["metrics"])
            print(table.__name__, played, round(rate, 1), round(rss[-1], 1), left, remembered, flush=True)  # noqa: T201 - whoever runs a benchmark wants to see it
            assert left == {}
        assert house.server.internal_errors() == 0

    assert metrics[-1] <= metrics[0] + ROOM_METRICS
    assert rss[-1] - rss[0] < ROOM_MB


@pytest.fixture(autouse=True)
def _log_to_nowhere() -> Iterator[None]:
    """The log is written as in production, and not kept."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        logs.configure("INFO", "json", nowhere)
        yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.timeout(10_800)
@pytest.mark.parametrize("table", [short_tables.mostly_short_table, short_tables.engine_table])
def test_memory_and_counts_come_back(table: Table) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(come_back(table))
