"""How fast the event store appends, beside bare loops and a well-known library on the same server in the same run.

Law: a real PostgreSQL that waits for the disk, and the event loop of production. What is to be stored is made before the
clock starts. Results that matter are kept in `results.md`.

The contenders, each in a closed loop: a table waits for its row before it gives the next one.

- *store*: the event store;
- *bare*: one connection that puts whatever waits in the log, many rows a statement, and commits; nothing else;
- *ready*: the same statement for the same number of tables, for which nobody waits;
- *library*: the `eventsourcing` library's PostgreSQL recorder, one event after the other: it locks its table.
"""

from __future__ import annotations

import asyncio
import gc
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import TypeVar
from uuid import UUID, uuid4

import psycopg
import pytest
import uvloop
from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresFactory
from eventsourcing.utils import Environment
from psycopg import conninfo
from psycopg.rows import TupleRow
from pytest_benchmark.fixture import BenchmarkFixture

from deploy import schemas
from deploy.local.postgres_server import PostgresServer
from engine.runtime.lifecycle import spare_the_collector
from engine.store.port import Append, Deadline
from engine.store.postgres import PostgresEventStore
from tests.support.streams import append, event, table_id

LAPS = 11
"""All are measured in turns, so that a disturbance meets each."""
ROWS = 15_000
"""Of all tables together in a lap."""
LIBRARY_ROWS = 500
"""The library's in a lap."""
WARM = 5
"""Rows of each table before the clock starts."""
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB", "min_wal_size": "2GB"}
"""As in `deploy/postgres/postgresql.conf`."""
LOG_FILES = 120
"""As many, of 16 MB, as the laps write in all."""
PAYLOAD = secrets.token_bytes(120)

BARE_INSERT = """
insert into engine.event select * from unnest(
    %b::int2[], %b::uuid[], %b::int8[], %b::text[], %b::int4[], %b::bytea[], %b::text[], %b::uuid[], %b::text[],
    %b::int8[], %b::bytea[], %b::bool[]
)
"""

Row = tuple[object, ...]
Connection = psycopg.AsyncConnection[TupleRow]
Item = TypeVar("Item")


pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def durable_database(server_folder: Path) -> Iterator[str]:
    """A migrated database on a server of its own that waits for the disk and has run for a while."""
    server = PostgresServer(server_folder / "durable", settings=SETTINGS)
    server.start()
    dsn = server.create_database("bench")
    schemas.migrate(dsn)
    _use_log_files(dsn)
    yield dsn
    server.stop()


def _use_log_files(dsn: str) -> None:
    """Let the server have files of its log to write over: to make a new one holds everybody up for 10 ms and more."""
    with psycopg.connect(dsn, autocommit=True) as owner:
        for _ in range(LOG_FILES):
            owner.execute("select pg_logical_emit_message(true, '', '')")
            owner.execute("select pg_switch_wal()")
        # The second one finds what the first one has made free.
        owner.execute("checkpoint")
        owner.execute("checkpoint")


def run(work: Coroutine[object, object, dict[str, float]]) -> dict[str, float]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def closed_loop(
    make: Callable[[UUID, int], Item], put: Callable[[Item], Awaitable[object]], tables: int
) -> float:
    """Rows a second of so many tables that each go on as soon as their last row is stored."""
    made = _made(make, tables)
    await asyncio.gather(*(_give(put, items[:WARM]) for items in made))
    with _as_after_a_start():
        began = time.perf_counter()
        await asyncio.gather(*(_give(put, items[WARM:]) for items in made))
        return tables * (ROWS // tables) / (time.perf_counter() - began)


async def _give(put: Callable[[Item], Awaitable[object]], items: list[Item]) -> None:
    for item in items:
        await put(item)


def _made(make: Callable[[UUID, int], Item], tables: int) -> list[list[Item]]:
    """What each table gives, in its order."""
    rounds = range(WARM + ROWS // tables)
    return [[make(table, version) for version in rounds] for table in (table_id() for _ in range(tables))]


@contextmanager
def _as_after_a_start() -> Iterator[None]:
    """Keep the collector away from what is there already, as a process does once it has started."""
    usual = gc.get_threshold()
    spare_the_collector()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*usual)


async def store_rate(store: PostgresEventStore, tables: int) -> float:
    """Appends a second of the event store."""
    return await closed_loop(_append, store.append, tables)


def _append(table: UUID, version: int) -> Append:
    return append(table, version, event(PAYLOAD), deadline=Deadline(1, version + 1))


class BareLoop:
    """A loop that stores whatever waits, a commit at a time."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Row, asyncio.Future[None]]] = []

    def put(self, row: Row) -> asyncio.Future[None]:
        """Done when the row is stored."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, stored))
        return stored

    async def run(self, connection: Connection) -> None:
        """Go on until cancelled."""
        while True:
            await asyncio.sleep(0)
            taken, self._waiting = self._waiting, []
            if taken:
                await connection.execute(BARE_INSERT, _columns([row for row, _ in taken]))
            for _, stored in taken:
                stored.set_result(None)


async def bare_rate(dsn: str, tables: int) -> float:
    """Rows a second of the bare loop that tables wait for."""
    async with _connected(dsn) as connection:
        loop = BareLoop()
        running = asyncio.create_task(loop.run(connection))
        rate = await closed_loop(_bare_row, loop.put, tables)
        running.cancel()
        await asyncio.wait({running})
    return rate


async def ready_rate(dsn: str, tables: int) -> float:
    """Rows a second of the bare statement when nobody waits for a row."""
    async with _connected(dsn) as connection:
        # One table that lays as many rows at once as there are tables.
        rounds = [[_bare_row(table_id(), version) for _ in range(tables)] for version in range(ROWS // tables)]
        began = time.perf_counter()
        for rows in rounds:
            await connection.execute(BARE_INSERT, _columns(rows))
        return tables * len(rounds) / (time.perf_counter() - began)


@asynccontextmanager
async def _connected(dsn: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True, prepare_threshold=0) as connection:
        yield connection


def _bare_row(table: UUID, version: int) -> Row:
    return (table.bytes[15], table, version, "set_laid", 1, PAYLOAD, "player-1", uuid4(), "", 1, PAYLOAD[:32], True)


def _columns(rows: list[Row]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def library_rate(dsn: str) -> float:
    """Events a second of the library's recorder."""
    with closing(PostgresFactory(Environment("bench", _library_settings(dsn)))) as factory:
        recorder = factory.application_recorder()
        events = [StoredEvent(uuid4(), 1, "set_laid", PAYLOAD) for _ in range(LIBRARY_ROWS)]
        began = time.perf_counter()
        for one in events:
            recorder.insert_events([one])
        return LIBRARY_ROWS / (time.perf_counter() - began)


def _library_settings(dsn: str) -> dict[str, str]:
    given = conninfo.conninfo_to_dict(dsn)
    names = {"dbname": "DBNAME", "host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    return {f"POSTGRES_{theirs}": str(given.get(ours) or "-") for ours, theirs in names.items()}


class Metronome:
    """Wakes all who are due, every millisecond: a timer for each append would cost as much as the append."""

    BEAT_S = 0.001

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._beat = 0

    def reach(self, seconds: float) -> asyncio.Future[None]:
        """Done when so many seconds have passed since the start."""
        beat = max(self._beat, round(seconds / self.BEAT_S))
        if beat not in self._waiting:
            self._waiting[beat] = asyncio.get_running_loop().create_future()
        return self._waiting[beat]

    async def run(self) -> None:
        """Go on until cancelled."""
        clock = asyncio.get_running_loop().time
        start = clock()
        while True:
            if due := self._waiting.pop(self._beat, None):
                due.set_result(None)
            self._beat += 1
            await asyncio.sleep(start + self._beat * self.BEAT_S - clock())


async def paced_seconds(store: PostgresEventStore, tables: int, rate: float) -> list[float]:
    """Seconds of each append when so many tables together append at this rate, evenly spread."""
    made = _made(_append, tables)
    metronome = Metronome()

    async def play(items: list[Append], due: float) -> list[float]:
        taken: list[float] = []
        for item in items[WARM:]:
            await metronome.reach(due)
            # The loop's own clock stands still while it is busy.
            began = time.perf_counter()
            await store.append(item)
            taken.append(time.perf_counter() - began)
            due += tables / rate
        return taken

    await asyncio.gather(*(_give(store.append, items[:WARM]) for items in made))
    with _as_after_a_start():
        beating = asyncio.create_task(metronome.run())
        rounds = await asyncio.gather(*(play(items, number / rate) for number, items in enumerate(made)))
        beating.cancel()
        await asyncio.wait({beating})
    return [seconds for taken in rounds for seconds in taken]


async def measure(dsn: str, tables: int) -> dict[str, float]:
    store = await PostgresEventStore.open(dsn)
    laps: list[tuple[float, ...]] = []
    half: list[list[float]] = []
    for _ in range(LAPS):
        ours = await store_rate(store, tables)
        laps.append((ours, await bare_rate(dsn, tables), await ready_rate(dsn, tables), library_rate(dsn)))
        half.append(await paced_seconds(store, tables, ours / 2))
    await store.close()
    worst = [quantiles(lap, n=100)[98] * 1000 for lap in half]
    ours, bare, ready, library = (median(rates) for rates in zip(*laps, strict=True))
    return {
        "appends/s": round(ours),
        "bare rows/s": round(bare),
        "ready rows/s": round(ready),
        "library events/s": round(library),
        "of bare": round(median(lap[0] / lap[1] for lap in laps), 2),
        "of ready": round(median(lap[0] / lap[2] for lap in laps), 2),
        "times the library": round(median(lap[0] / lap[3] for lap in laps)),
        "p50 at half load, ms": round(median(median(lap) for lap in half) * 1000, 1),
        "p99 at half load, ms": round(median(worst), 1),
        "p99 of the worst lap, ms": round(max(worst), 1),
    }


@pytest.mark.parametrize("tables", [20, 100, 500])
def test_appends_keep_up_with_bare_inserts(durable_database: str, tables: int, benchmark: BenchmarkFixture) -> None:
    figures: dict[str, float] = benchmark.pedantic(  # type: ignore[no-untyped-call] # the library has no types
        lambda: run(measure(durable_database, tables)), rounds=1
    )

    benchmark.extra_info |= figures
    print(tables, figures)  # noqa: T201 - whoever runs a benchmark wants to see it
    assert figures["of bare"] >= 0.3
    assert figures["times the library"] >= 10
