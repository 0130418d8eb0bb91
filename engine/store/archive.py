"""Archived days of the log: one file a day, complete, provable from itself, and read without a database.

Law: files only; which day is archived, and when it leaves the database, is decided in `retention.py`. A file has its name
only when it is whole and on disk, and what cannot be proved by its hash chain is never given out.

A file is a header of 512 bytes and gzip members one after the other, so that `tail -c +513 FILE | zcat` shows it all:

    header   a JSON object, filled up with spaces, a line end as the last byte: `format`, `day`, the numbers of `tables`,
             `events` and `commands`, the `first` and `last` table id, `index_at` (where the index begins in the file),
             `sha256` (hex) of everything after the header
    members  one for each table, by table id: a JSON object with the row of its stream, then for each event a JSON array
             of version, type, schema, payload (base64), actor, command id, trace id, at_ms, hash (hex), ends_command
    index    the last member, for each table a JSON array of table id, first byte and bytes of its member
"""

from __future__ import annotations

import gzip
import json
import os
import struct
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, NamedTuple, Self
from uuid import UUID

from engine.store.admission import MAX_READ
from engine.store.chain import first_break
from engine.store.port import StoredEvent, StreamHead, StreamNotFound, shard_of

FORMAT = "gouji log archive 1"
HEADER_BYTES = 512

_CHUNK = 1 << 20
_LONG_AGO_S = 86_400
_GARBLED = (ValueError, TypeError, LookupError, AttributeError, EOFError, zlib.error, struct.error, gzip.BadGzipFile)


class DamagedArchive(Exception):
    """The file is not what was written: take another copy, and drop nothing that it was made from."""


class ArchivedEvent(NamedTuple):
    """An event, and whether it is the last one of its command."""

    event: StoredEvent
    ends_command: bool


class ArchivedStream(NamedTuple):
    """A closed stream with all its events."""

    head: StreamHead
    events: tuple[ArchivedEvent, ...]


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself. `first` and `last` are empty when the day had no table."""

    format: str
    day: str
    tables: int
    events: int
    commands: int
    first: str
    last: str
    index_at: int
    sha256: str

    def written(self) -> bytes:
        """The header's bytes."""
        return f"{json.dumps(asdict(self)):<{HEADER_BYTES - 1}}\n".encode("ascii")


class _Place(NamedTuple):
    """Where a table's member is in the file."""

    at: int
    size: int


def day_of(table_id: UUID) -> date:
    """The day (UTC) on which the table's UUIDv7 was made, and in whose archive it is."""
    return datetime.fromtimestamp((table_id.int >> 80) / 1000, UTC).date()


def path_of(folder: Path, day: date) -> Path:
    """The file of a day."""
    return folder / f"log-{day.isoformat()}.archive"


def files_in(folder: Path) -> list[Path]:
    """The archives of a folder, oldest day first."""
    return sorted(folder.glob("log-*.archive"))


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """A file to be written that gets its name at the end of the block, and is gone when the block fails."""
    _clear(path)
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False) as file:
        part = Path(file.name)
    try:
        yield part
        part.replace(path)
        _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, day: date, streams: Iterable[ArchivedStream]) -> Header:
    """Write the streams of a day, which come by table id, and wait until they are on disk. The same day gives the same
    bytes.
    """  # noqa: D205 - one sentence for each promise
    with path.open("wb") as file:
        file.write(bytes(HEADER_BYTES))
        header = _fill(file, day, streams)
        file.seek(0)
        file.write(header.written())
        file.flush()
        os.fsync(file.fileno())
    return header


class ArchiveReader:
    """One archived day. Made by `open`."""

    def __init__(self, path: Path, header: Header, places: dict[UUID, _Place]) -> None:
        self.path = path
        self.header = header
        self._places = places

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read header and index. Raises `DamagedArchive`, `OSError`."""
        with path.open("rb") as file:
            header = read_header(file)
            file.seek(header.index_at)
            places = _places(file.read())
        if len(places) != header.tables:
            raise DamagedArchive("tables are missing")
        return cls(path, header, places)

    @property
    def tables(self) -> Sequence[UUID]:
        """The tables of the day, by id."""
        return tuple(self._places)

    def stream(self, table_id: UUID) -> ArchivedStream:
        """A table's stream, proved by its hash chain. Raises `StreamNotFound`, `DamagedArchive`."""
        place = self._places.get(table_id)
        if place is None:
            raise StreamNotFound(str(table_id))
        with self.path.open("rb") as file:
            file.seek(place.at)
            stream = _unpacked(file.read(place.size))
        _check_stream(table_id, stream)
        return stream

    def read(self, table_id: UUID) -> tuple[StoredEvent, ...]:
        """A table's events, in order, proved by their hash chain. Raises `StreamNotFound`, `DamagedArchive`."""
        return tuple([archived.event for archived in self.stream(table_id).events])

    def verify(self) -> Iterator[ArchivedStream]:
        """Prove everything and give out each stream on the way. Raises `DamagedArchive`."""
        self._check_content()
        self._check_index()
        events = commands = 0
        for table_id in self._places:
            stream = self.stream(table_id)
            events += len(stream.events)
            commands += sum(archived.ends_command for archived in stream.events)
            yield stream
        if (events, commands) != (self.header.events, self.header.commands):
            raise DamagedArchive("events are missing")

    def _check_content(self) -> None:
        digest = sha256()
        with self.path.open("rb") as file:
            file.seek(HEADER_BYTES)
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        if digest.hexdigest() != self.header.sha256:
            raise DamagedArchive("the content has another SHA-256 than the header says")

    def _check_index(self) -> None:
        at = HEADER_BYTES
        for place in self._places.values():
            if place.at != at:
                raise DamagedArchive("the index leaves something out")
            at += place.size
        ids, header = self.tables, self.header
        ends = (str(ids[0]), str(ids[-1])) if ids else ("", "")
        if (at, len(ids), *ends) != (header.index_at, header.tables, header.first, header.last):
            raise DamagedArchive("tables are missing")
        if list(ids) != sorted(ids) or any(day_of(table_id).isoformat() != header.day for table_id in ids):
            raise DamagedArchive("tables of another day")


class ArchivedLog:
    """The archives of a folder, read as a log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._newest: tuple[UUID, tuple[StoredEvent, ...]] | None = None

    async def read(self, table_id: UUID, after_version: int = 0, limit: int = MAX_READ) -> Sequence[StoredEvent]:
        """Events in version order after this version. Raises `StreamNotFound`, `DamagedArchive`."""
        start = max(after_version, 0)
        return self._events(table_id)[start : start + min(limit, MAX_READ)]

    async def last_of_type(self, table_id: UUID, type_: str) -> int:
        """The version of the newest event of this type, 0 if there is none. Raises as `read`."""
        return next((event.version for event in reversed(self._events(table_id)) if event.type == type_), 0)

    def _events(self, table_id: UUID) -> tuple[StoredEvent, ...]:
        """A table's events; those of the last table asked for are remembered."""
        if self._newest is None or self._newest[0] != table_id:
            try:
                reader = ArchiveReader.open(path_of(self._folder, day_of(table_id)))
            except FileNotFoundError:
                raise StreamNotFound(str(table_id)) from None
            self._newest = table_id, reader.read(table_id)
        return self._newest[1]


def read_header(file: BinaryIO) -> Header:
    """Read a header, which must be written as we write it. Raises `DamagedArchive`."""
    written = file.read(HEADER_BYTES)
    try:
        header = Header(**json.loads(written))
        is_ours = header.format == FORMAT and header.written() == written and header.index_at >= HEADER_BYTES
    except _GARBLED as error:
        raise DamagedArchive("there is no header") from error
    if not is_ours:
        raise DamagedArchive("this is no header of ours")
    return header


def _fill(file: BinaryIO, day: date, streams: Iterable[ArchivedStream]) -> Header:
    digest, at = sha256(), HEADER_BYTES
    places: dict[UUID, _Place] = {}
    events = commands = 0
    for stream in streams:
        member = _packed(stream)
        file.write(member)
        digest.update(member)
        places[stream.head.table_id] = _Place(at, len(member))
        at += len(member)
        events += len(stream.events)
        commands += sum(archived.ends_command for archived in stream.events)
    index = _member((str(table_id), *place) for table_id, place in places.items())
    file.write(index)
    digest.update(index)
    ids = [str(table_id) for table_id in places]
    ends = (ids[0], ids[-1]) if ids else ("", "")
    return Header(FORMAT, day.isoformat(), len(places), events, commands, *ends, at, digest.hexdigest())


def _member(lines: Iterable[object]) -> bytes:
    text = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)
    return gzip.compress(text.encode("ascii"), compresslevel=6, mtime=0)


def _lines(member: bytes) -> Iterator[str]:
    return iter(gzip.decompress(member).decode("ascii").splitlines())


def _packed(stream: ArchivedStream) -> bytes:
    return _member([_head_line(stream.head), *map(_event_line, stream.events)])


def _unpacked(member: bytes) -> ArchivedStream:
    try:
        lines = _lines(member)
        head = _head(next(lines))
        return ArchivedStream(head, tuple([_event(head.table_id, line) for line in lines]))
    except (*_GARBLED, StopIteration) as error:
        raise DamagedArchive("a table cannot be read") from error


def _places(index: bytes) -> dict[UUID, _Place]:
    try:
        rows = [json.loads(line) for line in _lines(index)]
        return {UUID(table_id): _Place(at, size) for table_id, at, size in rows}
    except _GARBLED as error:
        raise DamagedArchive("the index cannot be read") from error


def _head_line(head: StreamHead) -> object:
    return {
        "table": str(head.table_id),
        "shard": shard_of(head.table_id),
        "version": head.version,
        "head": head.hash.hex(),
        "epoch": head.epoch,
    }


def _head(line: str) -> StreamHead:
    row = json.loads(line)
    digest = bytes.fromhex(row["head"])
    return StreamHead(UUID(row["table"]), row["version"], digest, row["epoch"], closed=True, deadline=None)


def _event_line(archived: ArchivedEvent) -> object:
    event = archived.event
    return (
        event.version,
        event.type,
        event.schema,
        b64encode(event.payload).decode("ascii"),
        event.actor,
        str(event.command_id),
        event.trace_id,
        event.at_ms,
        event.hash.hex(),
        archived.ends_command,
    )


def _event(table_id: UUID, line: str) -> ArchivedEvent:
    version, type_, schema, payload, actor, command_id, trace_id, at_ms, digest, ends_command = json.loads(line)
    cause = (actor, UUID(command_id), trace_id, at_ms)
    payload = b64decode(payload, validate=True)
    return ArchivedEvent(
        StoredEvent(table_id, version, type_, schema, payload, *cause, bytes.fromhex(digest)), ends_command
    )


def _check_stream(table_id: UUID, stream: ArchivedStream) -> None:
    head, events = stream.head, [archived.event for archived in stream.events]
    if head.table_id != table_id:
        raise DamagedArchive(f"table {table_id} has the place of another")
    try:
        broken = first_break(events)
    except _GARBLED as error:
        raise DamagedArchive(f"table {table_id} cannot be read") from error
    if broken is not None:
        raise DamagedArchive(f"table {table_id}: the hash chain breaks at version {broken}")
    if not events or (len(events), events[-1].hash) != (head.version, head.hash):
        raise DamagedArchive(f"table {table_id}: events are missing")


def _clear(path: Path) -> None:
    """Remove what writers left behind that were killed long ago."""
    for part in path.parent.glob(f".{path.name}.*.part"):
        if part.stat().st_mtime < time.time() - _LONG_AGO_S:
            part.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Make the file's name as durable as its content."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
