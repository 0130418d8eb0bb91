"""The matchmaking service's RPCs: read the request, ask, write the answer.

Law: translation only. Faults pass through to the interceptor, which knows their statuses. The player is the caller.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import grpc
from gouji.matchmaking.v1 import matchmaking_pb2 as pb
from gouji.matchmaking.v1 import matchmaking_pb2_grpc as rpc

from services.matchmaking.office import Office
from services.matchmaking.wire import id_from_wire, ticket_to_wire

Context = grpc.aio.ServicerContext[Any, Any]
Identify = Callable[[], str]
"""Tells which player calls; raises `PermissionDenied` when it is none."""


class MatchmakingServicer(rpc.MatchmakingServiceServicer):
    """Serves players at the office."""

    def __init__(self, office: Office, who: Identify) -> None:
        self._office = office
        self._who = who

    async def CreateTicket(self, request: pb.CreateTicketRequest, context: Context) -> pb.CreateTicketResponse:  # noqa: ARG002 - gRPC's
        """Queue the caller."""
        command_id = id_from_wire("command_id", request.command_id)
        ticket = await self._office.create(self._who(), command_id, request.variant_key, request.deals)
        return pb.CreateTicketResponse(ticket=ticket_to_wire(ticket))

    async def CancelTicket(self, request: pb.CancelTicketRequest, context: Context) -> pb.CancelTicketResponse:  # noqa: ARG002 - gRPC's
        """Take the caller's ticket back, if it is not too late."""
        ticket = await self._office.cancel(self._who(), id_from_wire("ticket_id", request.ticket_id))
        return pb.CancelTicketResponse(ticket=ticket_to_wire(ticket))

    async def WatchTicket(
        self,
        request: pb.WatchTicketRequest,
        context: Context,  # noqa: ARG002 - gRPC's
    ) -> AsyncIterator[pb.WatchTicketResponse]:
        """Show the caller's ticket until it ends."""
        player_id, ticket_id = self._who(), id_from_wire("ticket_id", request.ticket_id)
        async with aclosing(self._office.watch(player_id, ticket_id)) as watch:
            async for ticket in watch:
                yield pb.WatchTicketResponse(ticket=ticket_to_wire(ticket))
