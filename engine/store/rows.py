"""Values to rows and back: what the statements take and give, at the door of the Postgres adapter.

Law: pure; knows the order of columns in `sql.py` and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.store.chain import chained
from engine.store.port import (
    Append,
    Appended,
    Deadline,
    OutboxEntry,
    PendingFact,
    StoredEvent,
    StreamHead,
    shard_of,
)

NO_DEADLINE = -1
"""What the append says for no deadline."""

_STREAM_COLUMNS = 11
_EVENT_COLUMNS = 12
_FACT_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class Chained:
    """An append with its events chained to `previous`, the hash of its stream's head."""

    append: Append
    previous: bytes
    events: tuple[StoredEvent, ...]

    @property
    def answer(self) -> Appended:
        """What the caller is told when it is stored."""
        return Appended(self.events[-1].version, self.events[-1].hash)


def chained_to(append: Append, previous: bytes) -> Chained:
    """Chain an append's events to the head of its stream."""
    return Chained(append, previous, chained(append, previous))


def columns(rows: Sequence[Chained]) -> list[list[object]]:
    """Lay appends out as the columns of `sql.APPEND`: streams, events, facts."""
    return [
        *_transposed(map(_stream_row, rows), _STREAM_COLUMNS),
        *_transposed((event for row in rows for event in _event_rows(row)), _EVENT_COLUMNS),
        *_transposed((fact for row in rows for fact in _fact_rows(row)), _FACT_COLUMNS),
    ]


def head_of(row: Sequence[Any]) -> StreamHead:
    """Read the columns table_id, version, head, owner_epoch, closed, deadline_at_ms, deadline_since_version."""
    table_id, version, digest, epoch, closed, at_ms, since_version = row
    deadline = None if at_ms is None else Deadline(at_ms, since_version)
    return StreamHead(table_id, version, digest, epoch, closed, deadline)


def fact_of(row: Sequence[Any]) -> PendingFact:
    """Read the columns of `sql.PENDING`."""
    table_id, position, subject, event_id, payload, version, previous_hash = row
    return PendingFact(table_id, OutboxEntry(position, subject, event_id, payload), version, previous_hash)


def _transposed(rows: Iterable[tuple[object, ...]], width: int) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def _stream_row(row: Chained) -> tuple[object, ...]:
    append, last = row.append, row.events[-1]
    deadline = None if append.closes else append.deadline
    return (
        shard_of(append.table_id),
        append.table_id,
        append.expected_version,
        row.previous,
        last.version,
        last.hash,
        append.epoch,
        append.command_id,
        deadline.at_ms if deadline else NO_DEADLINE,
        deadline.since_version if deadline else NO_DEADLINE,
        append.closes,
    )


def _event_rows(row: Chained) -> Iterable[tuple[object, ...]]:
    last, shard = row.events[-1], shard_of(row.append.table_id)
    for event in row.events:
        yield (
            shard,
            event.table_id,
            event.version,
            event.type,
            event.schema,
            event.payload,
            event.actor,
            event.command_id,
            event.trace_id,
            event.at_ms,
            event.hash,
            event is last,
        )


def _fact_rows(row: Chained) -> Iterable[tuple[object, ...]]:
    """A fact belongs to the last event of its command."""
    before_last = row.events[-2].hash if len(row.events) > 1 else row.previous
    for entry in row.append.outbox:
        yield (
            shard_of(row.append.table_id),
            row.append.table_id,
            entry.position,
            row.events[-1].version,
            before_last,
            entry.subject,
            entry.event_id,
            entry.payload,
        )
