"""A whole match by clients that know no rule, and its rematch: they ask what may be done and do it, over gRPC."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from uuid import uuid4

import grpc
import pytest
from gouji.game.v1 import action_pb2, view_pb2
from gouji.table.v1 import table_pb2 as pb
from gouji.table.v1 import table_pb2_grpc as rpc

from engine.runtime.bus import Bus
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.uuid7 import uuid7
from engine.store.memory import MemoryEventStore
from services.bots.faults import reason_of
from services.table.engine_client import Patience
from tests.support.engine_bench import PLAYERS, start
from tests.support.table_server import table_server

OPEN_KINDS = {action_pb2.ACTION_KIND_SUGGEST, action_pb2.ACTION_KIND_ORDER}
SHORT = ("deck={5:16,6:16,7:16,8:16,9:16,T:16,J:16,Q:16,K:16}",)


@dataclass
class Room:
    """Six players, each with a stub of his own, at one table."""

    stubs: dict[str, rpc.TableServiceAsyncStub]
    table_id: str = ""

    async def sit_down(self, *, deals: int = 1) -> None:
        """Open a table of few cards and start its first deal."""
        opening = pb.OpenTableRequest(
            command_id=str(uuid7()), variant_key="qingdao-charter", deals=deals, switches=SHORT
        )
        self.table_id = (await self.stubs["anna"].OpenTable(opening)).table_id
        for seat, player in enumerate(PLAYERS):
            seated = pb.TakeSeatRequest(table_id=self.table_id, command_id=str(uuid4()), seat=seat)
            assert (await self.stubs[player].TakeSeat(seated)).outcome.HasField("accepted")
        await self.get_ready()

    async def get_ready(self) -> None:
        """All six want the next deal."""
        for player in PLAYERS:
            ready = pb.SetReadyRequest(table_id=self.table_id, command_id=str(uuid4()), ready=True)
            assert (await self.stubs[player].SetReady(ready)).outcome.HasField("accepted")

    async def view(self, player: str = "nobody") -> view_pb2.View:
        return (await self.stubs[player].GetView(pb.GetViewRequest(table_id=self.table_id))).view

    async def moves(self, player: str) -> pb.ListMovesResponse:
        return await self.stubs[player].ListMoves(pb.ListMovesRequest(table_id=self.table_id))

    async def act(self, player: str, action: action_pb2.Action) -> pb.Outcome:
        acting = pb.ActRequest(table_id=self.table_id, command_id=str(uuid4()), action=action)
        return (await self.stubs[player].Act(acting)).outcome

    async def refused_a_rematch(self, player: str) -> str:
        """Why this player gets no rematch."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.stubs[player].Rematch(pb.RematchRequest(table_id=self.table_id))
        return reason_of(caught.value)

    async def play(self) -> None:
        """Play the running deal to its end."""
        chance = random.Random(3)
        while (view := await self.view()).public.phase == view_pb2.TABLE_PHASE_PLAYING:
            public = view.public
            seat = public.turn if public.HasField("turn") else chance.choice(public.window.waiting)
            listed = await self.moves(PLAYERS[seat])
            acts = [move.action for move in listed.moves if move.action.kind not in OPEN_KINDS]
            assert (await self.act(PLAYERS[seat], chance.choice(acts))).HasField("accepted")


@pytest.fixture(params=["memory", "nats"])
def url(request: pytest.FixtureRequest) -> str:
    """Where NATS is; empty for the bus within the process."""
    return str(request.getfixturevalue("nats_url")) if request.param == "nats" else ""


@pytest.fixture
async def room(url: str) -> AsyncIterator[Room]:
    broker = Broker()
    async with AsyncExitStack() as stack:

        async def bus() -> Bus:
            one: Bus = await NatsBus.connect(NatsOptions((url,))) if url else MemoryBus(broker)
            stack.push_async_callback(one.close)
            return one

        engine = await start(MemoryEventStore(), await bus())
        stack.push_async_callback(engine.stop)
        server = await stack.enter_async_context(table_server(await bus(), patience=Patience()))
        everybody = (*PLAYERS, "nobody")
        channels = {player: await stack.enter_async_context(server.channel(player)) for player in everybody}
        yield Room({player: rpc.TableServiceStub(channel) for player, channel in channels.items()})


async def test_six_who_want_a_rematch_sit_at_one_new_table(room: Room) -> None:
    async with asyncio.timeout(100):
        await room.sit_down()
        running = await room.refused_a_rematch("anna")
        await room.play()

        finished = pb.RematchRequest(table_id=room.table_id)
        rematches = await asyncio.gather(*(room.stubs[player].Rematch(finished) for player in PLAYERS))
        strangers = await room.refused_a_rematch("nobody")
        room.table_id = rematches[0].table_id
        await room.get_ready()

    assert (running, strangers) == ("NOT_FINISHED", "NOT_YOUR_TABLE")
    assert {(one.table_id, one.version) for one in rematches} == {(room.table_id, 1)}
    public = (await room.view()).public
    assert public.phase == view_pb2.TABLE_PHASE_PLAYING
    assert [seat.player_id for seat in public.seats] == list(PLAYERS)


async def test_clients_without_rules_play_a_match_by_the_list_of_moves(room: Room) -> None:
    async with asyncio.timeout(100):
        await room.sit_down()
        await room.play()

    assert (await room.view()).public.phase == view_pb2.TABLE_PHASE_FINISHED
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await room.moves("nobody")
    assert reason_of(caught.value) == "NOT_YOUR_SEAT"
