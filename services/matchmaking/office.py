"""What players can ask of matchmaking.

Law: the use cases; each is one call of the store and a ring of the bells that it concerns. No SQL, no message.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from uuid import UUID

from services.matchmaking.measures import Measures
from services.matchmaking.policy import Policy
from services.matchmaking.store import Tickets
from services.matchmaking.sweeper import Matcher
from services.matchmaking.tickets import State, Ticket
from services.matchmaking.watching import Watches


class Office:
    """Takes tickets in, gives them back, tells what became of them."""

    def __init__(
        self, tickets: Tickets, policy: Policy, matcher: Matcher, watches: Watches, measures: Measures
    ) -> None:
        self._tickets = tickets
        self._policy = policy
        self._matcher = matcher
        self._watches = watches
        self._measures = measures

    async def create(self, player_id: str, command_id: UUID, variant_key: str, deals: int) -> Ticket:
        """Queue a player. Raises `MalformedRequest`, `AlreadyQueued`, `AlreadySeated`, `Unavailable`."""
        ticket = await self._tickets.create(player_id, command_id, self._policy.queue(variant_key, deals))
        self._measures.created.inc()
        self._matcher.wake()
        return ticket

    async def cancel(self, player_id: str, ticket_id: UUID) -> Ticket:
        """Take a ticket back: it is cancelled, or proposed already, or as it had ended. Raises `TicketNotFound`."""
        ticket = await self._tickets.cancel(ticket_id, player_id)
        if ticket.state is State.CANCELLED:
            self._measures.ended.labels("cancelled").inc()
            self._watches.wake()
        return ticket

    async def watch(self, player_id: str, ticket_id: UUID) -> AsyncGenerator[Ticket, None]:
        """Show a ticket now and at every change until it ends. Raises `TicketNotFound`, `Busy`, `Unavailable`."""
        with self._measures.watches.track_inprogress():
            async with aclosing(self._watches.watch(ticket_id, player_id)) as watch:
                async for ticket in watch:
                    yield ticket
