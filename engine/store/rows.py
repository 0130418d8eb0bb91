"""Values to rows and back: what the statements take and give, at the door of the Postgres adapter.

Law: pure; knows the order of columns in `sql.py` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from engine.store.arrays import bools, byteas, int2s, int4s, int8s, texts, uuids
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

Packer = Callable[[Any], bytes]

_STREAM: tuple[Packer, ...] = (int2s, uuids, int8s, byteas, int8s, byteas, int8s, int8s, int8s, bools)
_EVENT: tuple[Packer, ...] = (uuids, int8s, texts, int4s, byteas, texts, uuids, texts, int8s, byteas)
_FACT: tuple[Packer, ...] = (int2s, uuids, int8s, int8s, byteas, texts, texts, byteas)


class Chained(NamedTuple):
    """An append, its events chained to `previous`, the hash of its stream's head, and its answer when it is stored."""

    append: Append
    previous: bytes
    events: tuple[StoredEvent, ...]
    answer: Appended


def chained_to(append: Append, previous: bytes) -> Chained:
    """Chain an append's events to the head of its stream."""
    events = chained(append, previous)
    return Chained(append, previous, events, Appended(events[-1].version, events[-1].hash))


def columns(rows: Sequence[Chained]) -> list[bytes]:
    """Lay appends out as the columns of `sql.APPEND`: streams, events."""
    return [*_packed(map(_stream_row, rows), _STREAM), *_event_columns(rows)]


def fact_columns(rows: Sequence[Chained]) -> list[bytes]:
    """Lay their facts out as the columns that `sql.APPEND_WITH_FACTS` takes besides; empty when there are none."""
    facts = [fact for row in rows if row.append.outbox for fact in _fact_rows(row)]
    return list(_packed(facts, _FACT)) if facts else []


def keys(table_ids: Sequence[UUID]) -> tuple[list[int], list[UUID]]:
    """The columns shard and table_id."""
    return [shard_of(table_id) for table_id in table_ids], list(table_ids)


def head_of(row: Sequence[Any]) -> StreamHead:
    """Read the columns table_id, version, head, owner_epoch, closed, deadline_at_ms, deadline_since_version."""
    table_id, version, digest, epoch, closed, at_ms, since_version = row
    deadline = None if at_ms is None else Deadline(at_ms, since_version)
    return StreamHead(table_id, version, digest, epoch, closed, deadline)


def fact_of(row: Sequence[Any]) -> PendingFact:
    """Read the columns of `sql.PENDING`."""
    table_id, position, subject, event_id, payload, version, previous_hash = row
    return PendingFact(table_id, OutboxEntry(position, subject, event_id, payload), version, previous_hash)


def _packed(rows: Iterable[tuple[object, ...]], packers: Sequence[Packer]) -> Iterator[bytes]:
    return (pack(column) for pack, column in zip(packers, zip(*rows, strict=True), strict=True))


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
        deadline.at_ms if deadline else NO_DEADLINE,
        deadline.since_version if deadline else NO_DEADLINE,
        append.closes,
    )


def _event_columns(rows: Sequence[Chained]) -> Iterator[bytes]:
    """The fields of an event as it is, between its shard and whether it ends its command."""
    events = [event for row in rows for event in row.events]
    yield int2s([shard_of(event.table_id) for event in events])
    yield from _packed(events, _EVENT)
    yield bools([event is row.events[-1] for row in rows for event in row.events])


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
