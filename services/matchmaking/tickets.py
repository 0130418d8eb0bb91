"""What a ticket is, from queueing to its end.

Law: plain values and their faults; no SQL, no message. A ticket starts as waiting; a match proposes it for a table, and
when that table does not open in time it waits again with its age. One of the three ends is for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from engine.runtime.faults import AlreadyExists, FailedPrecondition, NotFound
from services.matchmaking.matching import Queue


class State(StrEnum):
    """Where a ticket stands."""

    WAITING = "waiting"
    PROPOSED = "proposed"
    """Claimed for a table that is not open yet."""
    MATCHED = "matched"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


ACTIVE = frozenset({State.WAITING, State.PROPOSED})
"""The states that are no end."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A player's wish for a table. `table_id` and `seat` are there exactly when it is matched: nobody joins too early."""

    ticket_id: UUID
    player_id: str
    state: State
    queue: Queue
    created_at_ms: int
    table_id: UUID | None = None
    seat: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing can change any more."""
        return self.state not in ACTIVE


class TicketNotFound(NotFound):
    """You have no such ticket."""

    reason = "TICKET_NOT_FOUND"


class AlreadyQueued(AlreadyExists):
    """You have another active ticket: cancel it first."""

    reason = "ALREADY_QUEUED"


class AlreadySeated(FailedPrecondition):
    """You are seated in a ranked table that is not finished."""

    reason = "ALREADY_SEATED"
