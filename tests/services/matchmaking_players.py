"""Players who queue at a matchmaking service, and an engine that hears of their matches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import grpc
from gouji.matchmaking.v1 import facts_pb2
from gouji.matchmaking.v1 import matchmaking_pb2 as pb
from gouji.matchmaking.v1 import matchmaking_pb2_grpc as rpc
from pydantic import SecretStr

from engine.runtime import subjects
from engine.runtime.bus import FactMessage
from engine.runtime.bus_nats import NatsBus
from services.matchmaking.settings import MatchmakingSettings
from tests.fixtures.facts import Table
from tests.fixtures.processes import PUBLIC_KEY, bearer

if TYPE_CHECKING:
    Stub = rpc.MatchmakingServiceAsyncStub


def settings_for(dsn: str, nats_url: str, **changes: Any) -> MatchmakingSettings:
    return MatchmakingSettings(
        postgres_dsn=SecretStr(dsn),
        nats_servers=nats_url,
        token_public_keys=PUBLIC_KEY.decode(),
        matchmaking_sweep=0.05,
        matchmaking_look=0.05,
        address_rate=100_000,
        address_burst=100_000,
        **changes,
    )


async def queue(stub: Stub, player_id: str, variant_key: str = "shandong") -> pb.Ticket:
    request = pb.CreateTicketRequest(command_id=str(uuid4()), variant_key=variant_key, deals=4)
    return (await stub.CreateTicket(request, metadata=bearer(player_id))).ticket


async def cancel(stub: Stub, player_id: str, ticket: pb.Ticket) -> pb.Ticket:
    request = pb.CancelTicketRequest(ticket_id=ticket.ticket_id)
    return (await stub.CancelTicket(request, metadata=bearer(player_id))).ticket


async def watched(stub: Stub, player_id: str, ticket: pb.Ticket) -> list[pb.Ticket]:
    call = stub.WatchTicket(pb.WatchTicketRequest(ticket_id=ticket.ticket_id), metadata=bearer(player_id))
    return [response.ticket async for response in call]


async def watch_until(stub: Stub, player_id: str, ticket: pb.Ticket, state: pb.TicketState.ValueType) -> pb.Ticket:
    """Watch until the ticket is in this state."""
    call = stub.WatchTicket(pb.WatchTicketRequest(ticket_id=ticket.ticket_id), metadata=bearer(player_id))
    async for response in call:
        if response.ticket.state == state:
            call.cancel()
            return response.ticket
    raise AssertionError(player_id)


@asynccontextmanager
async def opening(bus: NatsBus) -> AsyncIterator[None]:
    """Tell of every match that its table is open, as the engine does."""

    async def take(fact: FactMessage) -> None:
        match = facts_pb2.MatchFound.FromString(fact.payload)
        opened = Table(UUID(match.table_id), match.players).opened()
        await bus.publish_fact(
            subjects.fact(UUID(match.table_id)), opened.SerializeToString(), event_id=opened.event_id
        )

    subscription = await bus.consume(subjects.MATCHES, f"engine-{uuid4()}", take)
    yield
    await subscription.stop()


async def found(bus: NatsBus, count: int) -> list[facts_pb2.MatchFound]:
    """The matches that the engine hears of; one more than `count` would be noticed."""
    matches: list[facts_pb2.MatchFound] = []
    enough = asyncio.Event()

    async def listen(fact: FactMessage) -> None:
        matches.append(facts_pb2.MatchFound.FromString(fact.payload))
        if len(matches) >= count:
            enough.set()

    subscription = await bus.consume(subjects.MATCHES, f"listener-{uuid4()}", listen)
    if count:
        await asyncio.wait_for(enough.wait(), 15)
    await asyncio.sleep(0.2)
    await subscription.stop()
    return matches


async def queue_at_last(stub: Stub, player_id: str) -> pb.Ticket:
    """Queue as soon as the service has heard that the player is free."""
    async with asyncio.timeout(10):
        while True:
            try:
                return await queue(stub, player_id)
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.05)
