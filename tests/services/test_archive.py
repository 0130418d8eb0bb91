"""Days of the log as files: proved from themselves, held against the database, dropped only then."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from engine.service.replay import fingerprints
from engine.store import retention
from engine.store.archive import (
    HEADER_BYTES,
    ArchivedEvent,
    ArchivedLog,
    ArchivedStream,
    ArchiveReader,
    DamagedArchive,
    day_of,
    files_in,
    path_of,
    unfinished,
    write,
)
from engine.store.chain import chained
from engine.store.partitions import bounds, make_partitions
from engine.store.port import GENESIS, StreamHead, StreamNotFound
from engine.store.postgres import PostgresEventStore
from engine.store.retention import ArchiveDisagrees, NotSettled, archive_day, days_before, drop_day
from tests.support.stored_tables import store_match
from tests.support.streams import append, event, fact, table_id
from tests.support.tables import TABLE_ID

TODAY = datetime.now(UTC).date()
DAY = date(2026, 10, 1)
MIDNIGHT_MS = int(datetime(2026, 10, 1, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresEventStore]:
    """A store with room for an old day."""
    make_partitions(database, DAY, 0)
    opened = await PostgresEventStore.open(database)
    yield opened
    await opened.close()


def table_of_day(shard: int | None = None, minute: int = 1) -> UUID:
    return table_id(shard, at_ms=MIDNIGHT_MS + minute * 60_000)


async def closed(store: PostgresEventStore, table: UUID, commands: int = 3) -> UUID:
    for number in range(commands):
        await store.append(append(table, 2 * number, event(), event(b"\0\xff"), closes=number == commands - 1))
    return table


def partitions(dsn: str) -> set[date]:
    return {day.day for day in days_before(dsn, TODAY, TODAY)}


def left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


# What is written


async def test_a_day_is_written_read_and_proved(database: str, store: PostgresEventStore, tmp_path: Path) -> None:
    tables = sorted([await closed(store, table_of_day(minute=minute)) for minute in range(5)])

    archived = archive_day(database, DAY, tmp_path)

    reader = ArchiveReader.open(path_of(tmp_path, DAY))
    assert archived.is_new
    assert list(reader.tables) == tables
    assert [stream.head.table_id for stream in reader.verify()] == tables
    for table in tables:
        assert list(reader.read(table)) == list(await store.read(table))
        assert reader.stream(table).head == await store.head(table)
    header = reader.header
    assert (header.tables, header.events, header.commands) == (5, 30, 15)
    assert (header.first, header.last) == (str(tables[0]), str(tables[-1]))


async def test_every_column_is_in_the_file_for_everybody_to_read(
    database: str, store: PostgresEventStore, tmp_path: Path
) -> None:
    table = await closed(store, table_of_day(7), 1)
    path = archive_day(database, DAY, tmp_path).path

    shown = gzip.decompress(path.read_bytes()[HEADER_BYTES:])

    stream, first, last, index = [json.loads(line) for line in shown.splitlines()]
    events = await store.read(table)
    assert stream == {"table": str(table), "shard": 7, "version": 2, "head": events[-1].hash.hex(), "epoch": 1}
    assert first[:4] == [1, "set_laid", 1, "Y2FyZHM="]
    assert first[4:8] == [events[0].actor, str(events[0].command_id), events[0].trace_id, events[0].at_ms]
    assert [first[8:], last[8:]] == [[events[0].hash.hex(), False], [events[1].hash.hex(), True]]
    assert index[:2] == [str(table), HEADER_BYTES]


async def test_a_day_without_tables_is_archived_too(database: str, store: PostgresEventStore, tmp_path: Path) -> None:
    header = archive_day(database, DAY, tmp_path).header
    drop_day(database, DAY, tmp_path)

    assert (header.tables, header.first) == (0, "")
    assert DAY not in partitions(database)
    assert await store.list_streams(1) == []


async def test_a_table_of_more_events_than_one_answer_is_archived_whole(
    database: str, store: PostgresEventStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MAX_READ", 4)
    tables = [await closed(store, table_of_day(), 5) for _ in range(9)]

    header = archive_day(database, DAY, tmp_path).header

    assert (header.tables, header.events) == (9, 90)
    assert len(ArchiveReader.open(path_of(tmp_path, DAY)).read(tables[0])) == 10


async def test_only_whole_days_before_the_given_one_are_taken_and_never_yesterday(database: str) -> None:
    make_partitions(database, DAY, 0)

    old = [day.day for day in days_before(database, date(2026, 11, 1), TODAY)]

    assert old == [DAY - timedelta(days=1), DAY]
    assert max(day.day for day in days_before(database, date(2199, 1, 1), TODAY)) < TODAY - timedelta(days=1)


# What leaves the database


async def test_a_dropped_day_replays_from_its_archive_to_the_same_states(database: str, tmp_path: Path) -> None:
    day = day_of(TABLE_ID)
    make_partitions(database, day, 0)
    store = await PostgresEventStore.open(database)
    log = (await store_match(store)).log
    before = await fingerprints(store, TABLE_ID)

    archive_day(database, day, tmp_path)
    drop_day(database, day, tmp_path)

    assert day not in partitions(database)
    assert await store.read(TABLE_ID) == []
    assert await fingerprints(ArchivedLog(tmp_path), TABLE_ID) == before
    assert list(ArchiveReader.open(path_of(tmp_path, day)).read(TABLE_ID)) == log
    assert (await store.head(TABLE_ID)).closed
    await store.close()


async def test_other_days_stay_and_go_on(database: str, store: PostgresEventStore, tmp_path: Path) -> None:
    old, new = await closed(store, table_of_day()), table_id()
    await store.append(append(new))

    archive_day(database, DAY, tmp_path)
    drop_day(database, DAY, tmp_path)

    await store.append(append(new, 1))
    assert len(await store.read(new)) == 2
    assert await store.read(old) == []
    assert make_partitions(database, TODAY) == ()


@pytest.mark.parametrize("what", ["an open stream", "an untold fact"])
async def test_a_day_that_is_not_settled_is_refused(
    database: str, store: PostgresEventStore, tmp_path: Path, what: str
) -> None:
    await closed(store, table_of_day())
    is_open = what == "an open stream"
    await store.append(append(table_of_day(), outbox=() if is_open else (fact(1),), closes=not is_open))

    with pytest.raises(NotSettled):
        archive_day(database, DAY, tmp_path)

    assert left_in(tmp_path) == []


async def test_twice_is_harmless(database: str, store: PostgresEventStore, tmp_path: Path) -> None:
    await closed(store, table_of_day())
    first = archive_day(database, DAY, tmp_path)
    content = first.path.read_bytes()

    again = archive_day(database, DAY, tmp_path)
    drop_day(database, DAY, tmp_path)

    assert (again.is_new, again.header) == (False, first.header)
    assert first.path.read_bytes() == content
    assert DAY not in {day.day for day in days_before(database, TODAY, TODAY)}


async def test_somebody_who_looked_at_a_table_in_between_does_not_matter(
    database: str, store: PostgresEventStore, tmp_path: Path
) -> None:
    table = await closed(store, table_of_day())
    archive_day(database, DAY, tmp_path)

    await store.claim(table, 99)
    drop_day(database, DAY, tmp_path)

    assert DAY not in partitions(database)


async def test_nothing_is_dropped_without_an_archive(database: str, store: PostgresEventStore, tmp_path: Path) -> None:
    table = await closed(store, table_of_day())

    with pytest.raises(FileNotFoundError):
        drop_day(database, DAY, tmp_path)

    assert len(await store.read(table)) == 6


async def test_nothing_is_dropped_that_came_after_the_archive(
    database: str, store: PostgresEventStore, tmp_path: Path
) -> None:
    archive_day(database, DAY, tmp_path)
    late = await closed(store, table_of_day())

    with pytest.raises(ArchiveDisagrees):
        drop_day(database, DAY, tmp_path)

    assert len(await store.read(late)) == 6


async def test_what_comes_in_at_the_last_moment_brings_the_day_back(
    database: str, store: PostgresEventStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = await closed(store, table_of_day(1))
    archive_day(database, DAY, tmp_path)
    detach = retention._detach

    def detach_late(owner: retention.Connection, day: date) -> None:
        with psycopg.connect(database) as racing:
            columns = "type, schema, payload, actor, command_id, trace_id, at_ms, hash, ends_command"
            racing.execute(
                f"insert into engine.event select shard, table_id, 99, {columns} from engine.event"  # noqa: S608
                " where version = 1".encode()
            )
        detach(owner, day)

    monkeypatch.setattr(retention, "_detach", detach_late)
    with pytest.raises(ArchiveDisagrees):
        drop_day(database, DAY, tmp_path)

    assert [one.version for one in await store.read(table)] == [1, 2, 3, 4, 5, 6, 99]
    assert all(day.attached for day in days_before(database, TODAY, TODAY))


@pytest.mark.parametrize(
    "statement",
    [
        "delete from engine.event where version = 3",
        "update engine.event set payload = 'other' where version = 2",
        "update engine.event set ends_command = false where version = 6",
        "update engine.stream set head = sha256('other')",
        "delete from engine.stream",
    ],
)
async def test_a_log_that_was_tampered_with_is_neither_archived_nor_dropped(
    database: str, store: PostgresEventStore, tmp_path: Path, statement: str
) -> None:
    await closed(store, table_of_day())
    whole = tmp_path / "whole"
    broken = tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    archive_day(database, DAY, whole)
    with psycopg.connect(database) as owner:
        owner.execute(statement.encode())

    with pytest.raises((ArchiveDisagrees, DamagedArchive)):
        drop_day(database, DAY, whole)
    if "ends_command" not in statement:
        with pytest.raises((ArchiveDisagrees, DamagedArchive)):
            archive_day(database, DAY, broken)
        assert left_in(broken) == []

    assert DAY in partitions(database)


# Broken off


async def test_dropping_goes_on_where_it_was_broken_off(
    database: str, store: PostgresEventStore, tmp_path: Path
) -> None:
    await closed(store, table_of_day())
    archive_day(database, DAY, tmp_path)
    with psycopg.connect(database, autocommit=True) as owner:
        retention._detach(owner, DAY)
    assert [day.attached for day in days_before(database, TODAY, TODAY) if day.day == DAY] == [False]

    archive_day(database, DAY, tmp_path)
    drop_day(database, DAY, tmp_path)

    assert DAY not in partitions(database)


async def test_a_detaching_that_was_broken_off_is_finished(
    database: str, store: PostgresEventStore, tmp_path: Path
) -> None:
    await closed(store, table_of_day())
    archive_day(database, DAY, tmp_path)
    with psycopg.connect(database) as reader:
        # A reader of the log holds the detaching up, half way, until it gives up.
        reader.execute("select count(*) from engine.event")
        with psycopg.connect(database, autocommit=True) as owner:
            owner.execute("set lock_timeout = '200ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                retention._detach(owner, DAY)
    assert [day.detaching for day in days_before(database, TODAY, TODAY) if day.day == DAY] == [True]

    drop_day(database, DAY, tmp_path)

    assert DAY not in partitions(database)


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"

    def broken_off() -> Iterator[ArchivedStream]:
        yield stream_of(table_of_day(), b"one")
        raise ConnectionAbortedError

    with pytest.raises(ConnectionAbortedError), unfinished(path) as part:
        write(part, DAY, broken_off())

    assert left_in(tmp_path) == []


def test_a_writer_that_is_killed_leaves_no_file_under_the_final_name(tmp_path: Path) -> None:
    path = path_of(tmp_path, DAY)
    script = f"""
import os, signal
from datetime import date
from pathlib import Path
from engine.store.archive import unfinished, write

def streams():
    os.kill(os.getpid(), signal.SIGKILL)
    yield

with unfinished(Path({str(path)!r})) as part:
    write(part, date(2026, 10, 1), streams())
"""
    killed = subprocess.run([sys.executable, "-c", script], check=False)

    assert killed.returncode == -9
    assert files_in(tmp_path) == []
    [half] = tmp_path.iterdir()
    os.utime(half, (0, 0))
    with unfinished(path) as part:
        write(part, DAY, [])
    assert left_in(tmp_path) == [path.name]


# Damage


def stream_of(table: UUID, *payloads: bytes) -> ArchivedStream:
    events = chained(append(table, 0, *(event(payload) for payload in payloads)), GENESIS)
    head = StreamHead(table, len(events), events[-1].hash, 1, closed=True, deadline=None)
    return ArchivedStream(head, tuple(ArchivedEvent(one, one is events[-1]) for one in events))


@pytest.fixture
def streams() -> list[ArchivedStream]:
    tables = sorted(table_of_day() for _ in range(3))
    return [stream_of(table, b"one", b"two", b"three") for table in tables]


@pytest.fixture
def archive(tmp_path: Path, streams: list[ArchivedStream]) -> Path:
    path = path_of(tmp_path, DAY)
    write(path, DAY, streams)
    return path


def proves(path: Path) -> bool:
    try:
        list(ArchiveReader.open(path).verify())
    except DamagedArchive:
        return False
    return True


def test_every_flipped_byte_is_found(archive: Path) -> None:
    content = archive.read_bytes()
    assert proves(archive)

    unnoticed = []
    for at in range(len(content)):
        archive.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        unnoticed += [at] * proves(archive)

    assert unnoticed == []


def test_every_truncation_and_every_addition_is_found(archive: Path) -> None:
    content = archive.read_bytes()

    for size in range(0, len(content), 7):
        archive.write_bytes(content[:size])
        assert not proves(archive), size
    archive.write_bytes(content + b"\0")

    assert not proves(archive)


def forged(archive: Path, streams: list[ArchivedStream]) -> bool:
    """Whether a file written anew, with all its sums right, is believed."""
    write(archive, DAY, streams)
    return proves(archive)


def test_a_missing_event_is_found_even_if_all_sums_are_right(archive: Path, streams: list[ArchivedStream]) -> None:
    first, *others = streams
    for missing in range(3):
        events = tuple(one for at, one in enumerate(first.events) if at != missing)
        assert not forged(archive, [first._replace(events=events), *others])
    assert not forged(archive, [first._replace(events=()), *others])

    assert forged(archive, streams)


def test_a_changed_or_moved_event_is_found_even_if_all_sums_are_right(
    archive: Path, streams: list[ArchivedStream]
) -> None:
    first, *others = streams
    one, two, three = first.events
    changes = (
        two.event._replace(payload=b"other"),
        two.event._replace(actor="other"),
        two.event._replace(at_ms=1),
        two.event._replace(type="other"),
        two.event._replace(schema=2),
        two.event._replace(trace_id="other"),
        two.event._replace(command_id=UUID(int=9)),
    )
    for changed in changes:
        assert not forged(archive, [first._replace(events=(one, two._replace(event=changed), three)), *others])

    assert not forged(archive, [first._replace(events=(two, one, three)), *others])


def test_tables_of_another_day_or_order_are_found(archive: Path, streams: list[ArchivedStream]) -> None:
    stranger = stream_of(table_id(at_ms=bounds(DAY)["before"].int >> 80), b"one")

    assert not forged(archive, [*streams, stranger])
    assert not forged(archive, streams[::-1])


async def test_a_damaged_table_is_not_given_out_and_an_unknown_one_is_not_found(
    archive: Path, streams: list[ArchivedStream]
) -> None:
    table = streams[0].head.table_id
    log = ArchivedLog(archive.parent)
    assert len(await log.read(table, 1)) == 2
    assert await log.last_of_type(table, "set_laid") == 3
    for unknown in (table_of_day(), table_id()):
        with pytest.raises(StreamNotFound):
            await log.read(unknown)

    write(archive, DAY, [streams[0]._replace(events=streams[0].events[1:]), *streams[1:]])

    with pytest.raises(DamagedArchive):
        await ArchivedLog(archive.parent).read(table)
