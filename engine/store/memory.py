"""The event store in memory: for tests, demonstrations and throw-away installations.

Law: promises what the port says, except that nothing outlives the process. Every change happens without an await in the
middle, which is this adapter's transaction.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import islice
from uuid import UUID

from engine.store.admission import MAX_READ, check, fair_share, refusal
from engine.store.chain import chained
from engine.store.port import (
    GENESIS,
    SHARDS,
    Append,
    Appended,
    Lease,
    Leases,
    NotTheLeader,
    OutboxEntry,
    PendingFact,
    StoredEvent,
    StoreUnavailable,
    StreamHead,
    StreamNotFound,
    shard_of,
)


@dataclass(slots=True)
class _Stream:
    """One stream: where it stands, its events, the answers its commands got, its unpublished facts by position."""

    head: StreamHead
    events: list[StoredEvent] = field(default_factory=list)
    answers: dict[UUID, Appended] = field(default_factory=dict)
    facts: dict[int, PendingFact] = field(default_factory=dict)


@dataclass(slots=True)
class _Term:
    """A shard's lease row."""

    owner: str = ""
    epoch: int = 0
    until_ms: int = 0


def monotonic_ms() -> int:
    """Milliseconds of a clock that never goes back."""
    return time.monotonic_ns() // 1_000_000


class MemoryEventStore:
    """The port's promises on dictionaries. `clock` gives the milliseconds that leases are counted in."""

    def __init__(self, clock: Callable[[], int] = monotonic_ms) -> None:
        self._clock = clock
        self._streams: dict[UUID, _Stream] = {}
        self._terms = [_Term() for _ in range(SHARDS)]
        self._present: dict[str, int] = {}
        self._held: dict[str, frozenset[Lease]] = {}
        self._closed = False

    async def append(self, append: Append) -> Appended:
        """Store the events of one command; durable when it returns."""
        check(append)
        self._check_open()
        answer = self._append(append)
        # A caller may be cancelled while it waits for a real store; here too, and the events stay stored.
        await asyncio.sleep(0)
        return answer

    async def find_command(self, table_id: UUID, command_id: UUID) -> Appended | None:
        """The answer that this command got, if it was ever stored."""
        self._check_open()
        stream = self._streams.get(table_id)
        return stream.answers.get(command_id) if stream else None

    async def head(self, table_id: UUID) -> StreamHead:
        """Where the stream stands."""
        return self._stream(table_id).head

    async def claim(self, table_id: UUID, epoch: int) -> StreamHead:
        """Write this epoch into the stream."""
        stream = self._stream(table_id)
        if stream.head.epoch > epoch:
            raise NotTheLeader(f"epoch {epoch}, the stream has {stream.head.epoch}")
        stream.head = replace(stream.head, epoch=epoch)
        return stream.head

    async def read(self, table_id: UUID, after_version: int = 0, limit: int = MAX_READ) -> Sequence[StoredEvent]:
        """Events in version order after this version."""
        start = max(after_version, 0)
        return self._stream(table_id).events[start : start + min(limit, MAX_READ)]

    async def last_of_type(self, table_id: UUID, type_: str) -> int:
        """The version of the newest event of this type, 0 if there is none."""
        self._check_open()
        stream = self._streams.get(table_id)
        newest_first = reversed(stream.events) if stream else ()
        return next((event.version for event in newest_first if event.type == type_), 0)

    async def list_streams(self, limit: int, before: UUID | None = None) -> Sequence[StreamHead]:
        """Streams that are not closed, newest table id first."""
        self._check_open()
        newest_first = sorted(self._streams, reverse=True)
        heads = (self._streams[table_id].head for table_id in newest_first if before is None or table_id < before)
        return list(islice((head for head in heads if not head.closed), min(limit, MAX_READ)))

    async def every_stream(self, first: UUID, limit: int) -> Sequence[StreamHead]:
        """Streams, open or closed, from this table id on, by table id."""
        self._check_open()
        heads = (self._streams[table_id].head for table_id in sorted(self._streams) if table_id >= first)
        return list(islice(heads, min(limit, MAX_READ)))

    async def keep_leases(self, owner: str, want: int, ttl_ms: int) -> Leases:
        """Renew, let go of what is over the fair share, take free or expired shards up to it."""
        self._check_open()
        now = self._clock()
        owners = self._live_owners(owner, now, ttl_ms)
        self._settle(owner, fair_share(len(owners), want), now, now + ttl_ms)
        return self._report(owner, len(owners), now)

    async def release_leases(self, owner: str) -> None:
        """Give up all shards of this owner at once."""
        self._check_open()
        self._present.pop(owner, None)
        self._held.pop(owner, None)
        for term in self._terms_of(owner):
            term.owner = ""

    async def leader(self, shard: int) -> str | None:
        """Who leads this shard now, if anybody."""
        self._check_open()
        term = self._terms[shard]
        return term.owner if term.owner and term.until_ms > self._clock() else None

    async def next_deadlines(self, shards: Sequence[int], limit: int) -> Sequence[StreamHead]:
        """Streams of these shards that have a deadline, earliest first."""
        armed = [
            (stream.head.deadline.at_ms, table_id, stream.head)
            for table_id, stream in self._streams_of(shards)
            if stream.head.deadline is not None
        ]
        return [head for _, _, head in nsmallest(min(limit, MAX_READ), armed, key=lambda entry: entry[:2])]

    async def pending_facts(self, shards: Sequence[int], limit: int) -> Sequence[PendingFact]:
        """Outbox rows of these shards that are not published, by table and position."""
        streams = sorted(self._streams_of(shards), key=lambda entry: entry[0])
        facts = (stream.facts[position] for _, stream in streams for position in sorted(stream.facts))
        return list(islice(facts, min(limit, MAX_READ)))

    async def mark_published(self, table_id: UUID, position: int) -> None:
        """Forget an outbox row."""
        self._check_open()
        if stream := self._streams.get(table_id):
            stream.facts.pop(position, None)

    async def close(self) -> None:
        """Take nothing any more."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")

    def _stream(self, table_id: UUID) -> _Stream:
        self._check_open()
        stream = self._streams.get(table_id)
        if stream is None:
            raise StreamNotFound(str(table_id))
        return stream

    def _streams_of(self, shards: Sequence[int]) -> Iterator[tuple[UUID, _Stream]]:
        self._check_open()
        wanted = frozenset(shards)
        return ((table_id, stream) for table_id, stream in self._streams.items() if shard_of(table_id) in wanted)

    def _append(self, append: Append) -> Appended:
        stream = self._streams.get(append.table_id)
        if stream is not None and (answered := stream.answers.get(append.command_id)):
            return answered
        if refused := refusal(append, stream.head if stream else None):
            raise refused
        stream = stream or _Stream(_unopened(append))
        _check_free(stream, append.outbox)
        answer = _store(stream, append)
        self._streams[append.table_id] = stream
        return answer

    def _live_owners(self, owner: str, now: int, ttl_ms: int) -> set[str]:
        """Note that this owner is alive, and forget those that are not."""
        self._present[owner] = now + ttl_ms
        self._present = {name: until for name, until in self._present.items() if until > now}
        return set(self._present)

    def _terms_of(self, owner: str) -> list[_Term]:
        return [term for term in self._terms if term.owner == owner]

    def _settle(self, owner: str, share: int, now: int, until_ms: int) -> None:
        mine = self._terms_of(owner)
        for term in mine[:share]:
            term.until_ms = until_ms
        for term in mine[share:]:
            term.owner = ""
        free = (term for term in self._terms if not term.owner or (term.owner != owner and term.until_ms <= now))
        for term in islice(free, max(share - len(mine), 0)):
            term.owner, term.epoch, term.until_ms = owner, term.epoch + 1, until_ms

    def _report(self, owner: str, owners: int, now: int) -> Leases:
        held = tuple(Lease(shard, owner, term.epoch) for shard, term in enumerate(self._terms) if term.owner == owner)
        lost = self._held.get(owner, frozenset()).difference(held)
        self._held[owner] = frozenset(held)
        ends = (term.until_ms - now for term in self._terms if term.owner not in ("", owner) and term.until_ms > now)
        return Leases(held, owners, tuple(sorted(lease.shard for lease in lost)), min(ends, default=None))


def _unopened(append: Append) -> StreamHead:
    return StreamHead(append.table_id, 0, GENESIS, append.epoch, closed=False, deadline=None)


def _check_free(stream: _Stream, entries: tuple[OutboxEntry, ...]) -> None:
    if any(entry.position in stream.facts for entry in entries):
        raise ValueError("a fact of this position is waiting already")


def _store(stream: _Stream, append: Append) -> Appended:
    events = chained(append, stream.head.hash)
    before_last = events[-2].hash if len(events) > 1 else stream.head.hash
    answer = Appended(events[-1].version, events[-1].hash)
    deadline = None if append.closes else append.deadline
    stream.head = StreamHead(append.table_id, answer.version, answer.hash, append.epoch, append.closes, deadline)
    stream.events.extend(events)
    stream.answers[append.command_id] = answer
    for entry in append.outbox:
        stream.facts[entry.position] = PendingFact(append.table_id, entry, answer.version, before_last)
    return answer
