"""What a ticket is, from queueing to its end.

Law: plain values and their faults; no SQL, no message. A ticket starts as waiting and changes once, into one of the three
ends; an end is for ever.
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
    MATCHED = "matched"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Ticket:
    """A player's wish for a table. `table_id` and `seat` are there exactly when it is matched."""

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
        return self.state is not State.WAITING


class TicketNotFound(NotFound):
    """You have no such ticket."""

    reason = "TICKET_NOT_FOUND"


class AlreadyQueued(AlreadyExists):
    """You have another active ticket: cancel it first."""

    reason = "ALREADY_QUEUED"


class AlreadySeated(FailedPrecondition):
    """You are seated in a ranked table that is not finished."""

    reason = "ALREADY_SEATED"
