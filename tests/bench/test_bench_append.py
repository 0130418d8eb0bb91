"""How fast the event store appends, beside a bare loop that puts the same rows in the log in the same run.

Law: a real PostgreSQL that waits for the disk, and the event loop of production. Results that matter are kept in
`results.md`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from statistics import median, quantiles
from uuid import UUID, uuid4

import psycopg
import pytest
import uvloop
from pytest_benchmark.fixture import BenchmarkFixture

from deploy import schemas
from deploy.local.postgres_server import PostgresServer
from engine.store.port import Deadline
from engine.store.postgres import PostgresEventStore
from tests.support.streams import append, event, table_id

LAPS = 5
"""The two are measured in turns, so that a disturbance meets both."""
APPENDS = 30
"""Of each table in a lap."""
WARM = 5
"""Appends before the clock starts."""
PAYLOAD = secrets.token_bytes(120)

BARE_INSERT = """
insert into engine.event select * from unnest(
    %b::int2[], %b::uuid[], %b::int8[], %b::text[], %b::int4[], %b::bytea[], %b::text[], %b::uuid[], %b::text[],
    %b::int8[], %b::bytea[], %b::bool[]
)
"""


@pytest.fixture(scope="module")
def durable_database(server_folder: Path) -> Iterator[str]:
    """A migrated database on a server of its own that waits for the disk."""
    server = PostgresServer(server_folder / "durable", settings={"max_wal_size": "4GB"})
    server.start()
    dsn = server.create_database("bench")
    schemas.migrate(dsn)
    yield dsn
    server.stop()


def run(work: Coroutine[object, object, dict[str, float]]) -> dict[str, float]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def bare_rate(dsn: str, tables: int) -> float:
    """Rows a second of a loop on one connection that puts a row for each table in the log and commits, nothing else."""
    ids = [table_id() for _ in range(tables)]
    connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True, prepare_threshold=0)
    began = 0.0
    for version in range(-WARM, APPENDS):
        if version == 0:
            began = time.perf_counter()
        await connection.execute(BARE_INSERT, _bare_columns(ids, version))
    rate = tables * APPENDS / (time.perf_counter() - began)
    await connection.close()
    return rate


def _bare_columns(ids: list[UUID], version: int) -> list[list[object]]:
    rows = [
        (one.bytes[15], one, version, "set_laid", 1, PAYLOAD, "player-1", uuid4(), "", 1, PAYLOAD[:32], True)
        for one in ids
    ]
    return [list(column) for column in zip(*rows, strict=True)]


async def _append_one(store: PostgresEventStore, table: UUID, version: int) -> float:
    """Seconds of one append."""
    began = time.perf_counter()
    await store.append(append(table, version, event(PAYLOAD), deadline=Deadline(1, version + 1)))
    return time.perf_counter() - began


async def append_rate(store: PostgresEventStore, tables: int) -> float:
    """Appends a second of so many tables that each append as soon as their last one is answered."""

    async def play(table: UUID, first: int, after: int) -> None:
        for version in range(first, after):
            await _append_one(store, table, version)

    ids = [table_id() for _ in range(tables)]
    await asyncio.gather(*(play(table, 0, WARM) for table in ids))
    began = time.perf_counter()
    await asyncio.gather(*(play(table, WARM, WARM + APPENDS) for table in ids))
    return tables * APPENDS / (time.perf_counter() - began)


async def paced_seconds(store: PostgresEventStore, tables: int, rate: float) -> list[float]:
    """Seconds of each append when so many tables together append at this rate, evenly spread."""
    clock = asyncio.get_running_loop().time

    async def play(table: UUID, due: float) -> list[float]:
        taken: list[float] = []
        for version in range(WARM + APPENDS):
            await asyncio.sleep(due - clock())
            taken.append(await _append_one(store, table, version))
            due += tables / rate
        return taken[WARM:]

    start = clock()
    rounds = await asyncio.gather(*(play(table_id(), start + number / rate) for number in range(tables)))
    return [seconds for taken in rounds for seconds in taken]


async def measure(dsn: str, tables: int) -> dict[str, float]:
    store = await PostgresEventStore.open(dsn)
    laps = [(await bare_rate(dsn, tables), await append_rate(store, tables)) for _ in range(LAPS)]
    bare, appends = (median(rates) for rates in zip(*laps, strict=True))
    half = await paced_seconds(store, tables, appends / 2)
    await store.close()
    return {
        "bare rows/s": round(bare),
        "appends/s": round(appends),
        "ratio": round(median(appends / bare for bare, appends in laps), 2),
        "p50 at half load, ms": round(median(half) * 1000, 1),
        "p99 at half load, ms": round(quantiles(half, n=100)[98] * 1000, 1),
    }


@pytest.mark.parametrize("tables", [20, 100, 500])
def test_appends_keep_up_with_bare_inserts(durable_database: str, tables: int, benchmark: BenchmarkFixture) -> None:
    figures: dict[str, float] = benchmark.pedantic(  # type: ignore[no-untyped-call] # the library has no types
        lambda: run(measure(durable_database, tables)), rounds=1
    )

    benchmark.extra_info |= figures
    print(tables, figures)  # noqa: T201 - whoever runs a benchmark wants to see it
    assert figures["ratio"] >= 0.3
