"""The hash chain of a stream: each event's hash covers the event and the hash before it.

Law: pure, and the only place that knows the layout; the adapters write it, the verifier checks it, offline.

    hash = SHA-256(record), where a record is these 213 bytes, integers big-endian:

    offset  bytes  field
         0      1  layout, 1
         1     16  table id
        17      8  version, unsigned
        25      4  schema, unsigned
        29      8  at_ms, unsigned
        37     16  command id
        53     32  SHA-256 of the type in UTF-8
        85     32  SHA-256 of the actor in UTF-8
       117     32  SHA-256 of the trace id in UTF-8
       149     32  hash of the event before, 32 zero bytes for version 1
       181     32  SHA-256 of the payload as stored

Changing any field of any event breaks the chain from there on, so a signature over a stream's head covers all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from struct import Struct
from uuid import UUID

from engine.store.port import GENESIS, Append, StoredEvent

LAYOUT = 1

_RECORD = Struct(">B16sQIQ16s32s32s32s32s32s")


def link(  # noqa: PLR0917 - an event's fields in their order
    previous: bytes,
    table_id: UUID,
    version: int,
    type_: str,
    schema: int,
    payload: bytes,
    actor: str,
    command_id: UUID,
    trace_id: str,
    at_ms: int,
) -> bytes:
    """Compute the hash of the event with these fields that follows the event with the hash `previous`."""
    digest = sha256(payload).digest()
    return link_digest(previous, table_id, version, type_, schema, digest, actor, command_id, trace_id, at_ms)


def link_digest(  # noqa: PLR0917 - as link
    previous: bytes,
    table_id: UUID,
    version: int,
    type_: str,
    schema: int,
    payload_digest: bytes,
    actor: str,
    command_id: UUID,
    trace_id: str,
    at_ms: int,
) -> bytes:
    """Compute the same hash where only the SHA-256 of the payload is known."""
    record = _RECORD.pack(
        LAYOUT,
        table_id.int.to_bytes(16, "big"),
        version,
        schema,
        at_ms,
        command_id.int.to_bytes(16, "big"),
        _digest(type_),
        _digest(actor),
        _digest(trace_id),
        previous,
        payload_digest,
    )
    return sha256(record).digest()


def chained(append: Append, previous: bytes) -> tuple[StoredEvent, ...]:
    """Turn an append into the events to store: numbered from its expected version on, chained to `previous`."""
    table_id, cause = append.table_id, (append.actor, append.command_id, append.trace_id, append.at_ms)
    events: list[StoredEvent] = []
    for version, new in enumerate(append.events, append.expected_version + 1):
        digest = sha256(new.payload).digest()
        previous = link_digest(previous, table_id, version, new.type, new.schema, digest, *cause)
        events.append(StoredEvent(table_id, version, new.type, new.schema, new.payload, *cause, previous))
    return tuple(events)


def first_break(events: Iterable[StoredEvent], previous: bytes = GENESIS, after_version: int = 0) -> int | None:
    """Find the version of the first event that does not follow from the ones before it; None when all do."""
    for version, event in enumerate(events, after_version + 1):
        if event.version != version or event.hash != _hash_due(event, previous):
            return version
        previous = event.hash
    return None


def _hash_due(event: StoredEvent, previous: bytes) -> bytes:
    return link(
        previous,
        event.table_id,
        event.version,
        event.type,
        event.schema,
        event.payload,
        event.actor,
        event.command_id,
        event.trace_id,
        event.at_ms,
    )


@lru_cache(maxsize=4096)
def _digest(text: str) -> bytes:
    """Types and actors come again and again; their digests are remembered."""
    return sha256(text.encode()).digest()
