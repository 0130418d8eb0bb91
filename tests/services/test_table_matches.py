from __future__ import annotations

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from gouji.game.v1 import action_pb2
from gouji.table.v1 import table_pb2 as pb
from gouji.table.v1 import table_pb2_grpc as rpc

from engine.runtime.bus import Bus
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.uuid7 import uuid7
from engine.service.waits import Spans
from engine.store.memory import MemoryEventStore
from services.bots.player import play_match
from services.bots.sight import Sight
from services.bots.table_client import TableClient
from services.table.engine_client import Patience
from tests.support.engine_bench import PLAYERS, start
from tests.support.table_server import TableServer, table_server, token

SPANS = Spans(turn_ms=60_000, window_ms=60_000, between_ms=60_000, gathering_ms=600_000)


@dataclass
class House:
    """An engine and three replicas of the table service."""

    replicas: Sequence[TableServer]
    frames: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))

    @asynccontextmanager
    async def stub(self, player: str, replica: int = 0) -> AsyncIterator[rpc.TableServiceAsyncStub]:
        async with self.replicas[replica].channel(player) as channel:
            yield rpc.TableServiceStub(channel)

    async def opened(self, variant: str = "qingdao-charter", deals: int = 1, switches: Sequence[str] = ()) -> str:
        opening = pb.OpenTableRequest(
            command_id=str(uuid7()), variant_key=variant, deals=deals, switches=switches, seating="SEATING_CHOSEN_TEAMS"
        )
        async with self.stub("opener") as opener:
            return (await opener.OpenTable(opening)).table_id

    async def played(self, table_id: str) -> list[Sight]:
        """Six house players, two on each replica, play the match to its end."""
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            playing = []
            for seat, player in enumerate(PLAYERS):
                channel = grpc.aio.insecure_channel(self.replicas[seat % 3].target)
                stack.push_async_callback(channel.close)
                client = TableClient(channel, lambda player=player: token(player), self.frames[player].append)
                playing.append(group.create_task(play_match(client, table_id, seat, seed=seat)))
        return [task.result() for task in playing]


@pytest.fixture(params=["memory", "nats"])
async def house(request: pytest.FixtureRequest) -> AsyncIterator[House]:
    broker = Broker()
    url = request.getfixturevalue("nats_url") if request.param == "nats" else ""

    async with AsyncExitStack() as stack:

        async def bus() -> Bus:
            one: Bus = await NatsBus.connect(NatsOptions((url,))) if url else MemoryBus(broker)
            stack.push_async_callback(one.close)
            return one

        engine = await start(MemoryEventStore(), await bus(), spans=SPANS)
        stack.push_async_callback(engine.stop)
        replicas = [await stack.enter_async_context(table_server(await bus(), patience=Patience())) for _ in range(3)]
        yield House(replicas)


async def test_six_house_players_on_three_replicas_play_a_match_to_its_end(house: House) -> None:
    table_id = await house.opened(deals=2)

    async with asyncio.timeout(100):
        ends = await house.played(table_id)

    assert {end.phase for end in ends} == {"FINISHED"}
    assert len({end.points for end in ends}) == 1
    assert {end.deal for end in ends} == {2}
