"""How a house player gets to a table: by a ticket, like everybody.

Law: an ordinary client of matchmaking; one ticket at a time, followed until it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol
from uuid import uuid4

from services.bots.faults import Stop, TryAgain
from services.bots.matchmaking_client import Ticket
from services.bots.pauses import growing

MATCHED = "MATCHED"
ENDED = frozenset({"CANCELLED", "EXPIRED"})


class Office(Protocol):
    """Whoever gives out tickets."""

    async def queue(self, command_id: str, variant_key: str, deals: int) -> Ticket:
        """Get a ticket. Raises `TryAgain`, `Stop`."""
        ...

    def watch(self, ticket_id: str) -> AsyncIterator[Ticket]:
        """Follow a ticket until it ends. Raises `TryAgain`, `Stop`."""
        ...


async def find_table(office: Office, variant_key: str, deals: int) -> Ticket:
    """Queue and wait until matched. Raises `Stop` when the ticket ends otherwise."""
    command_id = str(uuid4())
    pauses = growing()
    while True:
        try:
            ticket = await office.queue(command_id, variant_key, deals)
            return await _matched(office, ticket)
        except TryAgain:
            await asyncio.sleep(next(pauses))


async def _matched(office: Office, ticket: Ticket) -> Ticket:
    """Follow a ticket; proposed is still waiting. Raises `TryAgain` when the stream ends before the ticket does."""
    if ticket.state == MATCHED:
        return ticket
    async for state in office.watch(ticket.ticket_id):
        if state.state == MATCHED:
            return state
        if state.state in ENDED:
            raise Stop(state.state)
    raise TryAgain("THE_STREAM_ENDED")
