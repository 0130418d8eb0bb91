"""Matchmaking as one player uses it.

Law: messages in, plain values out.
"""

from __future__ import annotations

from typing import NamedTuple

import grpc
from gouji.matchmaking.v1 import matchmaking_pb2 as pb
from gouji.matchmaking.v1 import matchmaking_pb2_grpc as rpc

from engine.runtime.uuid7 import uuid7

QUEUE_S = 60.0


class NotMatched(Exception):
    """The ticket ended without a table: queue again."""


class Seat(NamedTuple):
    """Where a player sits."""

    table_id: str
    seat: int


async def seat_by_queue(channel: grpc.aio.Channel, token: str, variant_key: str, deals: int) -> Seat:
    """Queue and wait for a table. Raises `NotMatched`; gRPC's own errors come through."""
    signed_in = (("authorization", f"Bearer {token}"),)
    stub = rpc.MatchmakingServiceAsyncStub(channel)
    command_id = str(uuid7())
    request = pb.CreateTicketRequest(command_id=command_id, variant_key=variant_key, deals=deals)
    ticket = (await stub.CreateTicket(request, metadata=signed_in, timeout=QUEUE_S)).ticket
    watch = pb.WatchTicketRequest(ticket_id=ticket.ticket_id)
    async for response in stub.WatchTicket(watch, metadata=signed_in, timeout=QUEUE_S):
        ticket = response.ticket
        if ticket.state == pb.TICKET_STATE_MATCHED:
            return Seat(ticket.table_id, ticket.seat)
    raise NotMatched(pb.TicketState.Name(ticket.state))
