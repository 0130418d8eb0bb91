"""The event store's port: streams of bytes with versions, leases, deadlines and an outbox.

Law: this file knows no game and no driver. Both adapters, Postgres and memory, promise exactly what is written here,
and one contract suite holds them to it. A stream is a table; its version is 1, 2, 3 … without holes. Hashes chain the
events of a stream. A shard is a byte of the table id. What is made for every event is a named tuple, which is made in a
tenth of a dataclass's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol
from uuid import UUID

GENESIS = bytes(32)
"""The hash before a stream's first event."""
SHARDS = 256
"""How many shards there are."""


def shard_of(table_id: UUID) -> int:
    """The shard 0 to 255 that a table belongs to: the last byte of its UUIDv7, which is random."""
    return table_id.int & 0xFF


class WrongVersion(Exception):
    """The stream has moved on: load it again and decide again."""


class NotTheLeader(Exception):
    """A newer epoch owns the stream or the lease is gone: let go of the shard."""


class OutcomeUnknown(Exception):
    """The connection broke in the middle: look the command up, then append the same events under the same id."""


class StoreUnavailable(Exception):
    """The store cannot be reached: back off and try again."""


class StreamNotFound(Exception):
    """There is no such stream."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to append: its type (`set_laid`), schema version and encoded payload."""

    type: str
    schema: int
    payload: bytes


class StoredEvent(NamedTuple):
    """An event in the log. `at_ms` is Unix milliseconds; `hash` chains it to the event before (SHA-256)."""

    table_id: UUID
    version: int
    type: str
    schema: int
    payload: bytes
    actor: str
    command_id: UUID
    trace_id: str
    at_ms: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A fact to publish. `position` counts the facts of a table 1, 2, 3 …; `event_id` makes redelivery harmless."""

    position: int
    subject: str
    event_id: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class PendingFact:
    """An outbox row that is not published yet; `previous_hash` is the hash of the event before its own."""

    table_id: UUID
    entry: OutboxEntry
    version: int
    previous_hash: bytes


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a table's turn or window runs out. `since_version`: the version at which that turn began, the fence."""

    at_ms: int
    since_version: int


@dataclass(frozen=True, slots=True)
class Append:
    """One command's events and everything that the same moment needs, stored in one statement.

    `expected_version` is the version before the first event, 0 to open the stream. `deadline` replaces the table's
    deadline; None clears it. `closes` ends the stream for ever.
    """

    table_id: UUID
    expected_version: int
    epoch: int
    command_id: UUID
    actor: str
    at_ms: int
    events: tuple[NewEvent, ...]
    trace_id: str = ""
    outbox: tuple[OutboxEntry, ...] = ()
    deadline: Deadline | None = None
    closes: bool = False


class Appended(NamedTuple):
    """The events are durable; `version` is that of the last one, `hash` the head of the chain."""

    version: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class StreamHead:
    """Where a stream stands."""

    table_id: UUID
    version: int
    hash: bytes
    epoch: int
    closed: bool
    deadline: Deadline | None


@dataclass(frozen=True, slots=True)
class Lease:
    """Who leads a shard, until when by the store's own clock, and the epoch of this term."""

    shard: int
    owner: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Leases:
    """What one round of `keep_leases` left this owner with, and how many live owners share the shards.

    `next_end_ms`: in how many milliseconds the earliest lease of another owner ends unless renewed; None without any.
    """

    held: tuple[Lease, ...]
    owners: int = 1
    lost: tuple[int, ...] = field(default=())
    next_end_ms: int | None = None


class Log(Protocol):
    """What can be read of streams, wherever they are kept: in the store or in an archive."""

    async def read(self, table_id: UUID, after_version: int = 0, limit: int = 5000) -> Sequence[StoredEvent]:
        """Events in version order after this version; empty at the end. Raises `StreamNotFound`."""
        ...

    async def last_of_type(self, table_id: UUID, type_: str) -> int:
        """The version of the newest event of this type, 0 if there is none."""
        ...


class EventStore(Log, Protocol):
    """Everything the engine keeps. All methods raise `StoreUnavailable` when the store cannot be reached."""

    async def append(self, append: Append) -> Appended:
        """Store the events of one command; durable when it returns.

        A repeated `(table_id, command_id)` stores nothing and returns the first answer. Raises `WrongVersion`,
        `NotTheLeader` (a newer epoch is written in the stream, or the stream is closed), `OutcomeUnknown`, and
        `ValueError` for what can never be stored. An append of a newer epoch writes it in the stream, as `claim` does.
        Appends of many tables that wait at the same moment share a commit; one that fails does not fail the others.
        A cancelled caller does not cancel the append.
        """
        ...

    async def find_command(self, table_id: UUID, command_id: UUID) -> Appended | None:
        """The answer that this command got, if it was ever stored."""
        ...

    async def head(self, table_id: UUID) -> StreamHead:
        """Where the stream stands; raises `StreamNotFound`."""
        ...

    async def claim(self, table_id: UUID, epoch: int) -> StreamHead:
        """Write this epoch into the stream before it is replayed, so that an older leader can append nothing more.

        Raises `StreamNotFound`, `NotTheLeader` when a newer epoch is there already.
        """
        ...

    async def list_streams(self, limit: int, before: UUID | None = None) -> Sequence[StreamHead]:
        """Streams that are not closed, newest table id first, below `before`."""
        ...

    async def keep_leases(self, owner: str, want: int, ttl_ms: int) -> Leases:
        """Renew what this owner holds, let go of what is over its fair share, take free or expired shards up to it.

        `want` bounds the number of shards. Every acquisition gets an epoch higher than any before for that shard.
        The store's own clock decides.
        """
        ...

    async def release_leases(self, owner: str) -> None:
        """Give up all shards of this owner at once (a clean stop)."""
        ...

    async def leader(self, shard: int) -> str | None:
        """Who leads this shard now, if anybody."""
        ...

    async def next_deadlines(self, shards: Sequence[int], limit: int) -> Sequence[StreamHead]:
        """Streams of these shards that have a deadline, earliest first."""
        ...

    async def pending_facts(self, shards: Sequence[int], limit: int) -> Sequence[PendingFact]:
        """Outbox rows of these shards that are not published, by table and position."""
        ...

    async def mark_published(self, table_id: UUID, position: int) -> None:
        """Forget an outbox row that the bus has acknowledged; harmless when repeated."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go of every connection."""
        ...
