"""What is brought before the checker: what clients remember, what the log tells, what was on the bus, how players stand.

Law: values only. Nothing here was computed by a process that is under test, except what clients and operators were told
by it, which is what is judged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from engine.store.port import StoredEvent
from services.ranking.fold import Result, Standing

PUBLIC = "public"


class Said(NamedTuple):
    """An answer that a client got to a command; `accepted_at` is None for a refusal."""

    table_id: UUID
    player: str
    command_id: UUID
    accepted_at: int | None


class Kind(StrEnum):
    """What a frame did to a stream."""

    SNAPSHOT = "snapshot"
    EVENT = "event"
    VIEW = "view"
    BEAT = "heartbeat"


class Mark(NamedTuple):
    """One thing that a client saw at a version; of an event the digest of its bytes, of some views too."""

    kind: Kind
    version: int
    digest: bytes = b""


@dataclass(slots=True)
class Seen:
    """One stream of one client: the version it asked to go on from, and everything that came. `audience` as in views."""

    table_id: UUID
    player: str
    after: int
    audience: str = ""
    marks: list[Mark] = field(default_factory=list)


class TurnedAway(NamedTuple):
    """A client that was told not to come back, and why."""

    player: str
    table_id: UUID | None
    reason: str


class Witnessed(NamedTuple):
    """A live engine's word about a table's state at a version."""

    table_id: UUID
    version: int
    state: str


class Term(NamedTuple):
    """A writing of a table's row: the version it stood at then, and the epoch of the term in which it was written."""

    version: int
    epoch: int


class Logged(NamedTuple):
    """A row of the log."""

    event: StoredEvent
    ends_command: bool


class Fact(NamedTuple):
    """A fact of a table, as the log implies it or as it lies on the bus."""

    position: int
    event_id: str
    payload: bytes


class Timeout(NamedTuple):
    """A seat that ran out of time, and the wait that it was in."""

    wait: tuple[int, int]
    seat: int
    version: int


@dataclass(frozen=True, slots=True)
class Head:
    """Where a stream stands, by its own row."""

    version: int
    hash: bytes
    closed: bool
    deadline_at_ms: int | None


@dataclass(frozen=True, slots=True)
class Truth:
    """A table as a fresh process folds it from the log alone.

    `forms`: by audience, the digest of each event's redacted form. `results`: by fact position, what counts for ratings.
    `unfit`: where a deal's export does not verify. `views`: by audience and version, the digests of the views asked for.
    """

    table_id: UUID
    head: Head
    log: Sequence[Logged]
    forms: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    states: Sequence[str] = ()
    facts: Sequence[Fact] = ()
    results: Mapping[int, Result] = field(default_factory=dict)
    timeouts: Sequence[Timeout] = ()
    unfit: Sequence[str] = ()
    views: Mapping[tuple[str, int], bytes] = field(default_factory=dict)


class Counted(NamedTuple):
    """A line of ranking's journal: which fact of which table took effect."""

    table_id: UUID
    position: int


@dataclass(frozen=True, slots=True)
class Board:
    """Ranking's database: the journal in its order, the standings, and by player the positions of facts told."""

    journal: Sequence[Counted] = ()
    standings: Mapping[str, Standing] = field(default_factory=dict)
    told: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that is known when all faults are healed and all play has ended.

    `terms`: by table, who wrote its row, in that order. `healed`: the version of each table that was open at the moment of healing; `ended_at_ms`: when the engines were
    stopped; `pending`: positions of facts that were still in the outbox then; `settled`: whether everything else had
    come to rest; `waiting`: players still in the queue; `outcries`: what processes logged that must never be logged.
    """

    truths: Mapping[UUID, Truth] = field(default_factory=dict)
    terms: Mapping[UUID, Sequence[Term]] = field(default_factory=dict)
    said: Sequence[Said] = ()
    seen: Sequence[Seen] = ()
    witnessed: Sequence[Witnessed] = ()
    bus: Mapping[UUID, Sequence[Fact]] = field(default_factory=dict)
    board: Board = field(default_factory=Board)
    healed: Mapping[UUID, int] = field(default_factory=dict)
    ended_at_ms: int = 0
    pending: Mapping[UUID, Collection[int]] = field(default_factory=dict)
    settled: bool = True
    turned_away: Sequence[TurnedAway] = ()
    waiting: int = 0
    outcries: Sequence[str] = ()
