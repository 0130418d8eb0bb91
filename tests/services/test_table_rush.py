"""Everybody comes back at once, right after the start."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from functools import partial
from uuid import UUID

import grpc

from engine.runtime.bus_memory import Broker, MemoryBus
from engine.store.memory import MemoryEventStore
from services.bots.table_client import TableClient
from services.table.engine_client import Patience
from tests.support.engine_bench import PLAYERS, Callers, start
from tests.support.table_server import TableServer, table_server, token

TABLES = 34
WITHIN_S = 20.0


async def joined(server: TableServer, opened: AsyncExitStack, table_id: UUID, player: str) -> bool:
    """Dial over a connection of one's own, join, and wait for the first frame; the stream stays open."""
    channel = grpc.aio.insecure_channel(server.target, options=[("grpc.use_local_subchannel_pool", 1)])
    opened.push_async_callback(channel.close)
    stream = await TableClient(channel, partial(token, player)).play(str(table_id), 0)
    opened.callback(stream.close)
    return await stream.receive() is not None


async def test_two_hundred_players_who_come_at_once_right_after_the_start_are_all_let_in() -> None:
    broker = Broker()
    replica = await start(store := MemoryEventStore(), MemoryBus(broker))
    tables = [Callers(MemoryBus(broker)) for _ in range(TABLES)]
    await asyncio.gather(*(callers.open_with_six() for callers in tables))
    await replica.stop()
    coming = [(callers.table_id, player) for callers in tables for player in PLAYERS]

    async with AsyncExitStack() as opened:
        server = await opened.enter_async_context(table_server(MemoryBus(broker), patience=Patience()))
        began = time.monotonic()
        rush = asyncio.gather(*(joined(server, opened, *who) for who in coming))
        replica = await start(store, MemoryBus(broker), "b")
        opened.push_async_callback(replica.stop)
        arrived = await asyncio.wait_for(rush, WITHIN_S)
        print(f"\n{len(arrived)} joined in {time.monotonic() - began:.1f} s")  # noqa: T201 - to be read
        assert len(server.watchers.streams) == len(coming)

    assert all(arrived)
    assert server.internal_errors() == 0
