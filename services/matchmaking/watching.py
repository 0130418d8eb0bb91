"""Who watches which ticket, and tells him how it ended.

Law: one task looks for all watches of this replica, so a thousand watches cost one query a look. A change made by this
replica is seen at once, one made by another replica at the next look. An open watch is the ticket's sign of life.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import contextmanager
from uuid import UUID

import structlog

from engine.runtime.bell import Bell
from engine.runtime.faults import Busy, Unavailable
from services.matchmaking.store import Tickets
from services.matchmaking.tickets import Ticket

_log = structlog.get_logger(__name__)

_GOING = "This replica is going: watch again."


class Watches:
    """The watches of this replica: at most `most`, and `most_each` on one ticket. Times are in seconds."""

    def __init__(
        self, tickets: Tickets, *, look_s: float = 0.5, beat_s: float = 5.0, most: int = 10_000, most_each: int = 4
    ) -> None:
        self._tickets = tickets
        self._beat_s = beat_s
        self._most = most
        self._most_each = most_each
        self._watches: defaultdict[UUID, set[asyncio.Future[Ticket]]] = defaultdict(set)
        self._bell = Bell(look_s)
        self._count = 0
        self._beaten_at = 0.0
        self._going = False

    def __len__(self) -> int:
        return self._count

    async def watch(self, ticket_id: UUID, player_id: str) -> AsyncGenerator[Ticket, None]:
        """Give the ticket as it is now and, if that is not its end, its end.

        Raises `TicketNotFound`, `Busy` when there are too many watches, `Unavailable` when this replica goes.
        """
        with self._watching(ticket_id) as end:
            ticket = await self._tickets.find(ticket_id, player_id)
            yield ticket
            if not ticket.has_ended:
                yield await end

    def wake(self) -> None:
        """Some ticket has ended: look now."""
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
        for ends in self._watches.values():
            for end in ends:
                if not end.done():
                    end.set_exception(Unavailable(_GOING))

    async def _look(self) -> None:
        if watched := list(self._watches):
            for ticket in await self._tickets.ended(watched):
                self._end(ticket)
            await self._beat(watched)

    async def _beat(self, watched: Collection[UUID]) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._beaten_at >= self._beat_s:
            await self._tickets.beat(watched)
            self._beaten_at = now

    def _end(self, ticket: Ticket) -> None:
        for end in self._watches.get(ticket.ticket_id, ()):
            if not end.done():
                end.set_result(ticket)

    @contextmanager
    def _watching(self, ticket_id: UUID) -> Iterator[asyncio.Future[Ticket]]:
        if self._going:
            raise Unavailable(_GOING)
        if len(self) >= self._most or len(self._watches.get(ticket_id, ())) >= self._most_each:
            raise Busy("Too many watches.")
        end: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        self._watches[ticket_id].add(end)
        self._count += 1
        try:
            yield end
        finally:
            self._forget(ticket_id, end)

    def _forget(self, ticket_id: UUID, end: asyncio.Future[Ticket]) -> None:
        self._count -= 1
        self._watches[ticket_id].discard(end)
        if not self._watches[ticket_id]:
            del self._watches[ticket_id]
        if not end.cancel() and not end.cancelled():
            end.exception()  # seen, though its watcher was gone before
