"""The connection to Postgres breaks within an append: what the player did is in the log once, and he is told so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from uuid import uuid4

import pytest
from psycopg import conninfo

from deploy.local.postgres_server import PostgresServer
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.store.chain import first_break
from engine.store.postgres import PostgresEventStore
from tests.support.engine_bench import Callers, accepted, forms, start
from tests.support.proxy import FaultyProxy


@dataclass
class Far:
    """A table of an engine that reaches its store through a proxy, and the store as it is."""

    proxy: FaultyProxy
    store: PostgresEventStore
    callers: Callers


@pytest.fixture
async def far(database: str, postgres_server: PostgresServer) -> AsyncIterator[Far]:
    broker = Broker()
    async with AsyncExitStack() as opened:
        store = await PostgresEventStore.open(database)
        opened.push_async_callback(store.close)
        proxy = await opened.enter_async_context(FaultyProxy(postgres_server.port))
        far_store = await PostgresEventStore.open(conninfo.make_conninfo(database, port=proxy.port))
        opened.push_async_callback(far_store.close)
        replica = await start(far_store, MemoryBus(broker))
        opened.push_async_callback(replica.stop)
        callers = Callers(MemoryBus(broker))
        await callers.open_with_six()
        await callers.all_ready()
        await callers.play(8)
        yield Far(proxy, store, callers)


@pytest.mark.parametrize("is_committed", [True, False])
async def test_an_action_whose_append_is_cut_is_stored_once_and_accepted(far: Far, *, is_committed: bool) -> None:
    await far.callers.watch()
    turn = await far.callers._whose_turn()
    assert turn is not None
    command_id = uuid4()
    before = (await far.store.head(far.callers.table_id)).version

    far.proxy.cut_at(command_id.bytes, is_delivered=is_committed)
    version = accepted(await far.callers.act(*turn, command_id))

    assert far.proxy.has_cut
    log = await far.store.read(far.callers.table_id)
    assert first_break(log) is None
    of_command = [event.version for event in log if event.command_id == command_id]
    assert of_command == list(range(before + 1, version + 1))
    assert log[-1].version == version
    assert max(forms(far.callers.shown["public"])) == version
    assert accepted(await far.callers.act(*turn, command_id)) == version
