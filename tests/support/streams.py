"""Streams for tests of the store: ids of tables and commands, and appends with everything left out that does not matter.

Law: values only; knows the store's port and no adapter.
"""

from __future__ import annotations

import secrets
import time
from uuid import UUID, uuid4

from engine.store.port import Append, Deadline, NewEvent, OutboxEntry

EPOCH = 1
AT_MS = 1_790_000_000_000


def table_id(shard: int | None = None, *, at_ms: int | None = None) -> UUID:
    """Make a UUIDv7 of now or of another time, in a shard or in any."""
    ms = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    tail = secrets.token_bytes(9) + bytes([secrets.randbelow(256) if shard is None else shard])
    head = ms.to_bytes(6, "big")
    return UUID(bytes=head + bytes([0x70 | tail[0] & 0x0F, tail[1], 0x80 | tail[2] & 0x3F]) + tail[3:])


def event(payload: bytes = b"cards", type_: str = "set_laid") -> NewEvent:
    """One event."""
    return NewEvent(type_, 1, payload)


def fact(position: int) -> OutboxEntry:
    """One fact to publish."""
    return OutboxEntry(position, "gouji.facts.deal_finished", f"fact-{position}", b"points")


def append(
    table: UUID,
    expected_version: int = 0,
    *events: NewEvent,
    epoch: int = EPOCH,
    command_id: UUID | None = None,
    outbox: tuple[OutboxEntry, ...] = (),
    deadline: Deadline | None = None,
    closes: bool = False,
) -> Append:
    """An append of these events, or of one."""
    return Append(
        table_id=table,
        expected_version=expected_version,
        epoch=epoch,
        command_id=command_id or uuid4(),
        actor="player-1",
        at_ms=AT_MS + expected_version,
        events=events or (event(),),
        trace_id="0af7651916cd43dd8448eb211c80319c",
        outbox=outbox,
        deadline=deadline,
        closes=closes,
    )
