"""The matchmaking service as a house player uses it.

Law: messages in, plain values out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc
from gouji.matchmaking.v1 import matchmaking_pb2 as pb
from gouji.matchmaking.v1 import matchmaking_pb2_grpc as rpc

from engine.runtime.grpc_client import Token
from services.bots.faults import fault_of

CALL_S = 10.0
"""The deadline of a call with one answer."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A place in the queue; once matched it names the table and the seat."""

    ticket_id: str
    state: str
    table_id: str
    seat: int


class MatchmakingClient:
    """Calls the matchmaking service as one player. All methods raise the faults of `faults.py`."""

    def __init__(self, channel: grpc.aio.Channel, token: Token) -> None:
        self._stub: rpc.MatchmakingServiceAsyncStub = rpc.MatchmakingServiceStub(channel)
        self._token = token

    async def queue(self, command_id: str, variant_key: str, deals: int) -> Ticket:
        """Get a ticket; the same command id gives the same one."""
        request = pb.CreateTicketRequest(command_id=command_id, variant_key=variant_key, deals=deals)
        try:
            response = await self._stub.CreateTicket(request, metadata=self._metadata(), timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            raise fault_of(error) from error
        return _ticket(response.ticket)

    async def watch(self, ticket_id: str) -> AsyncIterator[Ticket]:
        """Follow a ticket until it ends; being watched keeps it alive."""
        try:
            request = pb.WatchTicketRequest(ticket_id=ticket_id)
            async for response in self._stub.WatchTicket(request, metadata=self._metadata()):
                yield _ticket(response.ticket)
        except grpc.aio.AioRpcError as error:
            raise fault_of(error) from error

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._token()}"),)


def _ticket(ticket: pb.Ticket) -> Ticket:
    state = pb.TicketState.Name(ticket.state).removeprefix("TICKET_STATE_")
    return Ticket(ticket.ticket_id, state, ticket.table_id, ticket.seat)
