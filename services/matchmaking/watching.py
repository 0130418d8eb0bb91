"""Who watches which ticket, and tells him what becomes of it.

Law: one task looks for all watches of this replica, so a thousand watches cost one query a look. A change made by this
replica is seen at once, one made by another replica at the next look; of changes between two looks the last is shown.
An open watch is the ticket's sign of life.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import contextmanager
from uuid import UUID

import structlog

from engine.runtime.bell import Bell
from engine.runtime.faults import Busy, Unavailable
from services.matchmaking.store import Tickets
from services.matchmaking.tickets import State, Ticket

_log = structlog.get_logger(__name__)


class _Watched:
    """A ticket that somebody watches, as it was last seen. Nothing comes after an end."""

    def __init__(self) -> None:
        self.watches = 0
        self._seen: Ticket | None = None
        self._told = asyncio.Event()
        self._going = False

    @property
    def state(self) -> str:
        """The state that was seen; empty before the first look."""
        return self._seen.state if self._seen else ""

    def tell(self, ticket: Ticket) -> None:
        """Show the ticket to all its watchers."""
        if self._seen is None or not self._seen.has_ended:
            self._seen = ticket
            self._wake()

    def send_away(self) -> None:
        """End all its watches."""
        self._going = True
        self._wake()

    async def other_than(self, state: State) -> Ticket:
        """Wait until the ticket is in another state than this one. Raises `Unavailable` when this replica goes."""
        while self._seen is None or self._seen.state is state:
            if self._going:
                raise _draining()
            await self._told.wait()
        return self._seen

    def _wake(self) -> None:
        self._told.set()
        self._told = asyncio.Event()


class Watches:
    """The watches of this replica: at most `most`, and `most_each` on one ticket. Times are in seconds."""

    def __init__(
        self, tickets: Tickets, *, look_s: float = 0.5, beat_s: float = 5.0, most: int = 10_000, most_each: int = 4
    ) -> None:
        self._tickets = tickets
        self._beat_s = beat_s
        self._most = most
        self._most_each = most_each
        self._watched: dict[UUID, _Watched] = {}
        self._bell = Bell(look_s)
        self._count = 0
        self._beaten_at = 0.0
        self._going = False

    def __len__(self) -> int:
        return self._count

    async def watch(self, ticket_id: UUID, player_id: str) -> AsyncGenerator[Ticket, None]:
        """Give the ticket as it is now and whenever its state is another, until its end.

        Raises `TicketNotFound`, `Busy` when there are too many watches, `Unavailable` when this replica goes.
        """
        with self._watching(ticket_id) as watched:
            ticket = await self._tickets.find(ticket_id, player_id)
            yield ticket
            while not ticket.has_ended:
                ticket = await watched.other_than(ticket.state)
                yield ticket

    def wake(self) -> None:
        """Some ticket is in another state: look now."""
        self._bell.ring()

    async def run(self) -> None:
        """Look and beat for ever."""
        while True:
            try:
                await self._look()
            except Unavailable:
                _log.warning("tickets not looked up", watches=len(self))
            await self._bell.sleep()

    async def close(self) -> None:
        """End all watches, and those that are still to come, with `Unavailable`: their callers go to another replica."""
        self._going = True
        for watched in self._watched.values():
            watched.send_away()

    async def _look(self) -> None:
        if known := {ticket_id: watched.state for ticket_id, watched in self._watched.items()}:
            for ticket in await self._tickets.changed(known):
                if watched := self._watched.get(ticket.ticket_id):
                    watched.tell(ticket)
            await self._beat(known)

    async def _beat(self, watched: Collection[UUID]) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._beaten_at >= self._beat_s:
            await self._tickets.beat(watched)
            self._beaten_at = now

    @contextmanager
    def _watching(self, ticket_id: UUID) -> Iterator[_Watched]:
        if self._going:
            raise _draining()
        watched = self._watched.get(ticket_id) or _Watched()
        if len(self) >= self._most or watched.watches >= self._most_each:
            raise Busy("Too many watches.")
        self._watched[ticket_id] = watched
        self._count += 1
        watched.watches += 1
        try:
            yield watched
        finally:
            self._forget(ticket_id, watched)

    def _forget(self, ticket_id: UUID, watched: _Watched) -> None:
        self._count -= 1
        watched.watches -= 1
        if not watched.watches:
            del self._watched[ticket_id]


def _draining() -> Unavailable:
    return Unavailable("This replica is stopping: watch again elsewhere.", reason="DRAINING")
