"""Matchmaking while the servers beneath it go and come back."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from gouji.matchmaking.v1 import matchmaking_pb2 as pb
from gouji.matchmaking.v1 import matchmaking_pb2_grpc as rpc

from deploy.local.nats_server import NatsServer
from deploy.local.postgres_server import PostgresServer
from engine.runtime.bus_nats import NatsBus, NatsOptions
from services.matchmaking.main import compose
from tests.fixtures.processes import dialled, running
from tests.fixtures.schemas import migrated
from tests.services.matchmaking_players import opening, queue, queue_at_last, settings_for, watch_until, watched

SIX = [f"p{number}" for number in range(6)]


@pytest.fixture
async def dsn(empty_database: str) -> str:
    migrated(empty_database, "matchmaking")
    return empty_database


async def test_matches_made_while_the_bus_is_down_are_told_when_it_is_back(
    dsn: str, nats_server: NatsServer, nats_url: str
) -> None:
    async with running(compose, settings_for(dsn, nats_url)) as address, dialled(address) as channel:
        stub: rpc.MatchmakingServiceAsyncStub = rpc.MatchmakingServiceStub(channel)
        nats_server.kill()
        tickets = [await queue(stub, player_id) for player_id in SIX]
        pairs = list(zip(SIX, tickets, strict=True))
        await asyncio.gather(*(watch_until(stub, *pair, pb.TICKET_STATE_PROPOSED) for pair in pairs))

        nats_server.restart()
        bus = await NatsBus.connect(NatsOptions((nats_url,)))
        async with opening(bus):
            seen = await asyncio.wait_for(asyncio.gather(*(watched(stub, *pair) for pair in pairs)), 20)
        await bus.close()

    assert {ticket.state for *_, ticket in seen} == {pb.TICKET_STATE_MATCHED}
    assert {ticket.seat for *_, ticket in seen} == set(range(6))


async def test_the_service_outlives_its_database(dsn: str, postgres_server: PostgresServer, nats_url: str) -> None:
    async with running(compose, settings_for(dsn, nats_url)) as address, dialled(address) as channel:
        stub: rpc.MatchmakingServiceAsyncStub = rpc.MatchmakingServiceStub(channel)
        early = [await queue(stub, player_id) for player_id in SIX[:3]]
        watching = asyncio.create_task(watched(stub, SIX[0], early[0]))
        await asyncio.sleep(0.3)
        postgres_server.kill()
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await queue(stub, "p3")
        assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE

        postgres_server.restart()
        for player_id in SIX[3:]:
            await queue_at_last(stub, player_id)

        bus = await NatsBus.connect(NatsOptions((nats_url,)))
        async with opening(bus):
            assert (await asyncio.wait_for(watching, 20))[-1].state == pb.TICKET_STATE_MATCHED
        await bus.close()
