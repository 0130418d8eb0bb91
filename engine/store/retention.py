"""Days of the log that leave the database: settled, archived, proved, and only then dropped.

Law: for the owner of the schema, never for the engine. A day is settled when each of its streams is closed and each of
its facts is told. Nothing is dropped that its archive does not prove, and nothing here may block an append.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from uuid import UUID

import psycopg
from psycopg import IsolationLevel
from psycopg import sql as composed
from psycopg.rows import TupleRow

from engine.store import sql
from engine.store.admission import MAX_READ
from engine.store.archive import ArchivedEvent, ArchivedStream, ArchiveReader, Header, path_of, unfinished, write
from engine.store.partitions import attach, bounds, name_of
from engine.store.port import StoredEvent, StreamHead, shard_of
from engine.store.rows import head_of

YOUNGEST = timedelta(days=1)
"""Yesterday is never archived: clocks differ, and a table of a minute before midnight may be opened after it."""

Connection = psycopg.Connection[TupleRow]

_EVENTS = """
select table_id, version, type, schema, payload, actor, command_id, trace_id, at_ms, hash, ends_command
from engine.{day}
where shard = %(shard)s and table_id = %(table_id)s and version > %(after_version)s
order by version limit %(limit)s
"""
_COUNTS = "select count(*), count(*) filter (where ends_command) from engine.{day}"
_LOCK = "lock table engine.{day} in access exclusive mode"
_DROP = "drop table engine.{day}"
_DETACH = "alter table engine.event detach partition engine.{day} concurrently"
_FINISH_DETACHING = "alter table engine.event detach partition engine.{day} finalize"
_PATIENCE = "set lock_timeout = '10s'"


class NotSettled(Exception):
    """A stream of the day is open, or a fact of it is not told: come back later."""


class ArchiveDisagrees(Exception):
    """The archive does not hold what the database holds: nothing was dropped, an operator has to look."""


@dataclass(frozen=True, slots=True)
class Day:
    """A day that is in the database. One whose dropping was broken off is no longer `attached`, or still `detaching`."""

    day: date
    attached: bool
    detaching: bool


@dataclass(frozen=True, slots=True)
class Archived:
    """An archive that agrees with the database, and whether it was written just now."""

    path: Path
    header: Header
    is_new: bool


def days_before(dsn: str, before: date, today: date) -> tuple[Day, ...]:
    """The days in the database before this one, and not too young, oldest first."""
    before = min(before, today - YOUNGEST)
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(sql.PARTITIONS).fetchall()
    days = [Day(_day(name), attached, detaching) for name, attached, detaching in rows]
    return tuple(day for day in days if day.day < before)


def archive_day(dsn: str, day: date, folder: Path) -> Archived:
    """Write a day's archive unless it is there, and prove it against the database.

    Raises `NotSettled`, `ArchiveDisagrees`, `DamagedArchive` also when the log itself breaks its chain, and
    `psycopg.OperationalError`.
    """
    path = path_of(folder, day)
    with _snapshot(dsn) as connection:
        _check_settled(connection, day)
        if path.exists():
            return Archived(path, _agreeing(connection, path, day), is_new=False)
        with unfinished(path) as part:
            write(part, day, _streams(connection, day))
            header = _agreeing(connection, part, day)
    return Archived(path, header, is_new=True)


def drop_day(dsn: str, day: date, folder: Path) -> None:
    """Drop a day from the database once its archive has been proved against it again; raises as `archive_day`.

    Harmless when repeated after it was broken off.
    """
    path = path_of(folder, day)
    with _snapshot(dsn) as connection:
        _check_settled(connection, day)
        header = _agreeing(connection, path, day)
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(_PATIENCE)
        _detach(owner, day)
        if not _drop(owner, day, header):
            raise ArchiveDisagrees(f"{day}: events came in while it was dropped")


@contextmanager
def _snapshot(dsn: str) -> Iterator[Connection]:
    """One unchanging view of everything, without writing."""
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        yield connection


def _check_settled(connection: Connection, day: date) -> None:
    unsettled = connection.execute(sql.UNSETTLED, bounds(day)).fetchone()
    if unsettled:
        raise NotSettled(f"{day}: table {unsettled[0]} is open or has facts to tell")


def _agreeing(connection: Connection, path: Path, day: date) -> Header:
    """The header of an archive that proves itself and holds this day exactly as the database does."""
    reader = ArchiveReader.open(path)
    if reader.header.day != day.isoformat():
        raise ArchiveDisagrees(f"{path.name} holds {reader.header.day}")
    for archived, stored in zip_longest(reader.verify(), _streams(connection, day)):
        if _content(archived) != _content(stored):
            raise ArchiveDisagrees(f"{day}: table {(stored or archived).head.table_id} differs")
    if _counts(connection, day) != (reader.header.events, reader.header.commands):
        raise ArchiveDisagrees(f"{day}: another number of events")
    return reader.header


def _content(stream: ArchivedStream | None) -> ArchivedStream | None:
    """A stream without the epoch of its leader, which moves on when somebody looks at the table."""
    return stream and stream._replace(head=replace(stream.head, epoch=0))


def _heads(connection: Connection, day: date) -> Iterator[StreamHead]:
    wanted: dict[str, object] = {**bounds(day), "limit": MAX_READ}
    while rows := connection.execute(sql.STREAMS_BETWEEN, wanted).fetchall():
        yield from map(head_of, rows)
        wanted["first"] = UUID(int=rows[-1][0].int + 1)


def _streams(connection: Connection, day: date) -> Iterator[ArchivedStream]:
    for head in _heads(connection, day):
        yield ArchivedStream(head, tuple(_events(connection, day, head.table_id)))


def _events(connection: Connection, day: date, table_id: UUID) -> Iterator[ArchivedEvent]:
    statement = _of_day(_EVENTS, day)
    wanted = {"shard": shard_of(table_id), "table_id": table_id, "after_version": 0, "limit": MAX_READ}
    while rows := connection.execute(statement, wanted, binary=True).fetchall():
        for *event, ends_command in rows:
            yield ArchivedEvent(StoredEvent(*event), ends_command)
        wanted["after_version"] = rows[-1][1]


def _counts(connection: Connection, day: date) -> tuple[int, int]:
    [(events, commands)] = connection.execute(_of_day(_COUNTS, day)).fetchall()
    return events, commands


def _detach(owner: Connection, day: date) -> None:
    """Take the day out of the log, going on where it was broken off; appends of other days do not wait."""
    standing = {_day(name): (attached, detaching) for name, attached, detaching in owner.execute(sql.PARTITIONS)}
    attached, detaching = standing.get(day, (False, False))
    if detaching:
        owner.execute(_of_day(_FINISH_DETACHING, day))
    elif attached:
        owner.execute(_of_day(_DETACH, day))


def _drop(owner: Connection, day: date, header: Header) -> bool:
    """Drop the detached day, unless something was added at the last moment: then it goes back into the log."""
    with owner.transaction():
        owner.execute(_of_day(_LOCK, day))
        is_archived = _counts(owner, day) == (header.events, header.commands)
        if is_archived:
            owner.execute(_of_day(_DROP, day))
        else:
            attach(owner, day)
    return is_archived


def _of_day(statement: str, day: date) -> composed.Composed:
    return composed.SQL(statement).format(day=composed.Identifier(name_of(day)))


def _day(name: str) -> date:
    return datetime.strptime(name, "event_%Y%m%d").date()  # noqa: DTZ007 - a day has no zone
