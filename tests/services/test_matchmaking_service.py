"""Matchmaking as its players meet it: real ports, real database, real bus, two replicas."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING
from uuid import uuid4

import grpc
import pytest
from gouji.engine.v1.facts_pb2 import Fact
from gouji.matchmaking.v1 import matchmaking_pb2 as pb
from gouji.matchmaking.v1 import matchmaking_pb2_grpc as rpc

from deploy.local.nats_server import NatsServer
from engine.runtime import postgres
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.identity import Role
from services.matchmaking.main import compose
from tests.fixtures.facts import Table
from tests.fixtures.processes import StartFailed, bearer, dialled, running
from tests.fixtures.schemas import as_service, migrated
from tests.services.matchmaking_players import (
    cancel,
    found,
    opening,
    queue,
    queue_at_last,
    settings_for,
    watched,
)
from tests.services.matchmaking_replica import Replica

if TYPE_CHECKING:
    Stub = rpc.MatchmakingServiceAsyncStub


@pytest.fixture
async def dsn(empty_database: str) -> str:
    """The database as the service's own role sees it."""
    migrated(empty_database, "matchmaking")
    return as_service(empty_database, "matchmaking")


@pytest.fixture
async def stubs(dsn: str, nats: str) -> AsyncIterator[Sequence[Stub]]:
    """Two replicas on one database and one bus."""
    async with AsyncExitStack() as stack:
        addresses = [await stack.enter_async_context(running(compose, settings_for(dsn, nats))) for _ in range(2)]
        channels = [await stack.enter_async_context(dialled(address)) for address in addresses]
        yield [rpc.MatchmakingServiceStub(channel) for channel in channels]


@pytest.fixture
async def nats(nats_server: NatsServer, nats_url: str) -> str:
    """The bus as the service's own account sees it; what a test leaves there is removed."""
    del nats_url
    return nats_server.url("matchmaking")


@pytest.fixture
async def bus(nats_url: str) -> AsyncIterator[NatsBus]:
    bus = await NatsBus.connect(NatsOptions((nats_url,)))
    yield bus
    await bus.close()


async def test_sixty_players_on_two_replicas_are_each_in_exactly_one_match(stubs: Sequence[Stub], bus: NatsBus) -> None:
    async def play(number: int) -> pb.Ticket:
        ticket = await queue(stubs[number % 2], f"p{number}")
        return (await watched(stubs[(number // 2) % 2], f"p{number}", ticket))[-1]

    async with opening(bus):
        ended = await asyncio.wait_for(asyncio.gather(*(play(number) for number in range(60))), 30)

    matches = await found(bus, 10)
    assert Counter(player for match in matches for player in match.players) == Counter(f"p{n}" for n in range(60))
    seats = {player: (match.table_id, seat) for match in matches for seat, player in enumerate(match.players)}
    assert [(ticket.table_id, ticket.seat) for ticket in ended] == [seats[f"p{number}"] for number in range(60)]


async def test_whoever_cancels_while_matches_are_made_hears_one_truth(stubs: Sequence[Stub], bus: NatsBus) -> None:
    chance = random.Random(5)

    async def play(number: int) -> pb.Ticket:
        stub = stubs[number % 2]
        ticket = await queue(stub, f"p{number}")
        await asyncio.sleep(chance.random() * 0.1)
        return await cancel(stub, f"p{number}", ticket)

    answers = await asyncio.wait_for(asyncio.gather(*(play(number) for number in range(48))), 30)

    by_state = Counter(answer.state for answer in answers)
    assert set(by_state) <= {pb.TICKET_STATE_CANCELLED, pb.TICKET_STATE_PROPOSED}
    matches = await found(bus, by_state[pb.TICKET_STATE_PROPOSED] // 6)
    claimed = [f"p{n}" for n, answer in enumerate(answers) if answer.state == pb.TICKET_STATE_PROPOSED]
    assert sorted(player for match in matches for player in match.players) == sorted(claimed)


async def test_a_match_claimed_before_a_crash_is_published_by_whoever_starts_next(
    dsn: str, nats: str, bus: NatsBus
) -> None:
    async with postgres.pool(dsn, "matchmaking") as pool:
        crashed = Replica(pool)
        await crashed.queue_all([f"p{number}" for number in range(6)])
        await crashed.matcher.sweep()
        assert len(await crashed.announced()) == 1

    async with running(compose, settings_for(dsn, nats)):
        (match,) = await found(bus, 1)

    assert list(match.players) == [f"p{number}" for number in range(6)]


async def test_tickets_left_waiting_by_a_crash_are_matched_with_their_age(dsn: str, nats: str, bus: NatsBus) -> None:
    async with postgres.pool(dsn, "matchmaking") as pool:
        tickets = await Replica(pool).queue_all([f"p{number}" for number in range(7)])

    async with running(compose, settings_for(dsn, nats)):
        (match,) = await found(bus, 1)

    assert sorted(match.players) == [ticket.player_id for ticket in tickets[:6]]


async def test_a_seated_player_is_told_so_until_his_match_ends(stubs: Sequence[Stub], bus: NatsBus) -> None:
    table = Table(uuid4(), [f"p{number}" for number in range(6)])

    async def tell(fact: Fact) -> None:
        await bus.publish_fact(table.subject, fact.SerializeToString(), event_id=fact.event_id)

    waiting = await queue(stubs[0], "p0")
    await tell(table.opened())
    assert (await watched(stubs[0], "p0", waiting))[-1].state == pb.TICKET_STATE_CANCELLED
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await queue(stubs[1], "p0")
    assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION

    await tell(table.finished())
    assert (await queue_at_last(stubs[1], "p0")).state == pb.TICKET_STATE_WAITING


async def test_the_seats_are_drawn(stubs: Sequence[Stub], bus: NatsBus) -> None:
    for number in range(24):
        await queue(stubs[0], f"p{number:02}")

    matches = await found(bus, 4)

    assert any(list(match.players) != sorted(match.players) for match in matches)


async def test_a_replica_that_stops_sends_watchers_to_the_other(dsn: str, nats: str) -> None:
    async with AsyncExitStack() as stack:
        staying = await stack.enter_async_context(running(compose, settings_for(dsn, nats)))
        async with running(compose, settings_for(dsn, nats)) as going:
            stub: Stub = rpc.MatchmakingServiceStub(await stack.enter_async_context(dialled(going)))
            ticket = await queue(stub, "ann")
            watching = asyncio.create_task(watched(stub, "ann", ticket))
            await asyncio.sleep(0.2)
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await watching
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE

        stub = rpc.MatchmakingServiceStub(await stack.enter_async_context(dialled(staying)))
        assert (await cancel(stub, "ann", ticket)).state == pb.TICKET_STATE_CANCELLED


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ((), grpc.StatusCode.UNAUTHENTICATED),
        (bearer("deploy", Role.ADMIN), grpc.StatusCode.PERMISSION_DENIED),
        (bearer("ann"), grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
async def test_only_players_queue_and_only_for_what_there_is(
    stubs: Sequence[Stub], metadata: tuple[tuple[str, str], ...], code: grpc.StatusCode
) -> None:
    request = pb.CreateTicketRequest(command_id=str(uuid4()), variant_key="poker")

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await stubs[0].CreateTicket(request, metadata=metadata)

    assert refusal.value.code() is code


@pytest.mark.parametrize("ticket_id", ["", "x", "{1ef0f395-75b4-4c5a-9890-cc4f15cdd98c}", "\x00" * 40])
async def test_a_malformed_id_is_the_callers_fault(stubs: Sequence[Stub], ticket_id: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await stubs[0].CancelTicket(pb.CancelTicketRequest(ticket_id=ticket_id), metadata=bearer("ann"))

    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_an_unknown_ticket_is_not_found(stubs: Sequence[Stub]) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await stubs[0].CancelTicket(pb.CancelTicketRequest(ticket_id=str(uuid4())), metadata=bearer("ann"))

    assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


async def test_an_unmigrated_database_is_refused(empty_database: str, nats: str) -> None:
    with pytest.raises(StartFailed):
        async with running(compose, settings_for(empty_database, nats)):
            pass
