"""What very many short tables leave behind in one engine and one table service: counted things, and memory.

Law: everything runs in this process, on the event loop of production and on a store that forgets. `GOUJI_BENCH_TABLES`
says how many tables; results that matter are kept in `tests/chaos/results.md`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import grpc
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
GATHERING_MS = 10_000
TIME_TO_GO_S = GATHERING_MS / 1000 + 15
ROOM_MB = 32.0
"""What may be remembered on purpose: the shapes of sets, texts of hands, digests of names, tables' last facts, callers."""
LOST_KB = 0.2
"""What gRPC may lose for a table: 270 bytes of each message that was being sent when its stream was broken off."""
ROOM_METRICS = 20
"""Samples that may come late: of results that are rare."""

Table = Callable[[House, int], Awaitable[None]]


class Lap(NamedTuple):
    """What there is after so many tables: MiB, what is left of them, what is remembered, and what went wrong."""

    rss: float
    left: dict[str, int]
    remembered: dict[str, int]
    faults: list[Exception]


async def play(house: House, table: Table, numbers: Iterable[int]) -> list[Exception]:
    """So many tables, by several crews at once; what went wrong at some does not stop the others."""
    waiting, faults = iter(numbers), list[Exception]()

    async def one_after_another() -> None:
        for number in waiting:
            try:
                await table(house, number)
            except (grpc.aio.AioRpcError, AssertionError) as fault:
                faults.append(fault)

    await asyncio.gather(*(one_after_another() for _ in range(CREWS)))
    return faults


async def come_back(table: Table) -> list[Lap]:
    """Play in laps, the first to warm up, and count after each what is left."""
    laps: list[Lap] = []
    async with crowded_house.house(CREWS, GATHERING_MS) as house:
        base, played = crowded_house.census(house), 0
        for tables in (WARM, *[TABLES // LAPS] * LAPS):
            began = time.perf_counter()
            faults = await play(house, table, range(played, played + tables))
            rate, played = tables / (time.perf_counter() - began), played + tables
            left = await crowded_house.left_behind(house, base, TIME_TO_GO_S)
            laps.append(Lap(crowded_house.rss_mb(), left, crowded_house.bounded(house), faults))
            print(table.__name__, played, f"{rate:.1f}/s", laps[-1], flush=True)  # noqa: T201 - whoever runs a benchmark wants to see it
        assert house.server.internal_errors() == 0
    return laps


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
        laps = runner.run(come_back(table))

    assert not [lap for lap in laps if lap.left or lap.faults]
    assert laps[-1].remembered["metrics"] <= laps[0].remembered["metrics"] + ROOM_METRICS
    assert laps[-1].rss - laps[0].rss < ROOM_MB + TABLES * LOST_KB / 1024
