"""Which waiting tickets become a table.

Law: pure; knows no storage, no clock and no dice (the seats are drawn by whoever passes `draw` in). Compatible tickets
want the same variant and the same number of deals; such tickets are a queue. Of every queue the six oldest go first,
then the next six: nobody waits while five younger ones and he could play, and no six that fit are left over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

SEATS = 6


class Queue(NamedTuple):
    """What compatible tickets have in common."""

    variant_key: str
    deals: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A ticket that waits. `created_at_ms` is its age; it is kept whatever becomes of the services."""

    ticket_id: UUID
    player_id: str
    queue: Queue
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class Match:
    """Six tickets, by seat, and the table where they meet."""

    table_id: UUID
    queue: Queue
    tickets: tuple[Waiting, ...]

    @property
    def players(self) -> tuple[str, ...]:
        """The players by seat."""
        return tuple(ticket.player_id for ticket in self.tickets)


Draw = Callable[[Sequence[Waiting]], Sequence[Waiting]]
NewTableId = Callable[[], UUID]


def matches(waiting: Iterable[Waiting], draw: Draw, new_table_id: NewTableId) -> list[Match]:
    """Make every match there is, oldest tickets first within each queue; `draw` orders six tickets by seat."""
    return [
        Match(new_table_id(), queue, tuple(draw(six)))
        for queue, tickets in by_queue(waiting).items()
        for six in sixes(tickets)
    ]


def by_queue(waiting: Iterable[Waiting]) -> Mapping[Queue, list[Waiting]]:
    """Sort tickets into their queues, each oldest first; the ticket id decides among twins."""
    queues: defaultdict[Queue, list[Waiting]] = defaultdict(list)
    for ticket in sorted(waiting, key=lambda ticket: (ticket.created_at_ms, ticket.ticket_id)):
        queues[ticket.queue].append(ticket)
    return queues


def sixes(tickets: Sequence[Waiting]) -> Iterable[Sequence[Waiting]]:
    """Cut a queue into full tables; up to five tickets are left."""
    full = len(tickets) - len(tickets) % SEATS
    return (tickets[start : start + SEATS] for start in range(0, full, SEATS))
