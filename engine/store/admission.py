"""What a store takes in: the bounds of an append, and why one is refused.

Law: pure; both adapters decide by these functions, so that they cannot differ.
"""

from __future__ import annotations

from itertools import pairwise

from engine.store.port import SHARDS, Append, NewEvent, NotTheLeader, OutboxEntry, StreamHead, WrongVersion

MAX_EVENTS = 1024
"""Events of one command."""
MAX_FACTS = 64
"""Facts of one command."""
MAX_BYTES = 1 << 20
"""Bytes of one payload."""
MAX_TEXT = 256
"""Characters of a type, an actor, a trace id, a subject, an event id."""
MAX_READ = 5000
"""Rows of one answer."""
MAX_NUMBER = 1 << 62
"""Versions, epochs, times, positions: what fits a column with room for what is counted on from there."""
MAX_SCHEMA = (1 << 31) - 1
"""An event's schema version."""


def check(append: Append) -> None:
    """Raise `ValueError` when this can be no append at all: the caller has to be mended, not to try again."""
    if not 0 < len(append.events) <= MAX_EVENTS:
        raise ValueError(f"a command stores 1 to {MAX_EVENTS} events")
    if len(append.outbox) > MAX_FACTS:
        raise ValueError(f"a command publishes at most {MAX_FACTS} facts")
    _check_numbers(append.expected_version, append.epoch, append.at_ms)
    if append.deadline is not None:
        _check_numbers(append.deadline.since_version, 0, append.deadline.at_ms)
    _check_text(append.actor)
    _check_text(append.trace_id)
    for event in append.events:
        _check_event(event)
    if append.outbox:
        _check_facts(append.outbox)


def refusal(append: Append, head: StreamHead | None) -> WrongVersion | NotTheLeader | None:
    """Say why a stream that stands at `head` (None when there is none) does not take this append; None when it does."""
    if head is not None and (head.closed or head.epoch > append.epoch):
        return NotTheLeader(f"epoch {append.epoch}, the stream has {head.epoch}{' and is closed' * head.closed}")
    version = head.version if head is not None else 0
    if version != append.expected_version:
        return WrongVersion(f"version {append.expected_version} expected, the stream is at {version}")
    return None


def fair_share(owners: int, want: int) -> int:
    """How many shards one of so many live owners may hold."""
    return min(want, -(-SHARDS // owners))


def _check_numbers(version: int, epoch: int, at_ms: int) -> None:
    # What is too long for a column would be found out among other tables' appends.
    if not (0 <= version <= MAX_NUMBER and 0 <= epoch <= MAX_NUMBER and 0 <= at_ms <= MAX_NUMBER):
        raise ValueError(f"versions, epochs and times are 0 to {MAX_NUMBER}")


def _check_event(event: NewEvent) -> None:
    if not 0 <= event.schema <= MAX_SCHEMA:
        raise ValueError(f"a schema version is 0 to {MAX_SCHEMA}")
    _check_text(event.type)
    _check_payload(event.payload)


def _check_facts(entries: tuple[OutboxEntry, ...]) -> None:
    for entry in entries:
        _check_text(entry.subject)
        _check_text(entry.event_id)
        _check_payload(entry.payload)
    if any(after.position != before.position + 1 for before, after in pairwise(entries)):
        raise ValueError("facts are numbered without holes")
    if not 1 <= entries[0].position <= MAX_NUMBER:
        raise ValueError(f"facts are numbered from 1 to {MAX_NUMBER}")


def _check_payload(payload: bytes) -> None:
    if len(payload) > MAX_BYTES:
        raise ValueError(f"a payload has at most {MAX_BYTES} bytes")


def _check_text(text: str) -> None:
    if len(text) > MAX_TEXT or "\0" in text:
        raise ValueError(f"a name has at most {MAX_TEXT} characters and no NUL")
    if not text.isascii():
        # Half a character is a `UnicodeEncodeError`, which is a `ValueError`.
        text.encode()
