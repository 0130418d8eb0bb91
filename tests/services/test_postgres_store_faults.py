"""The event store on Postgres when the network or the server fails: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest
import structlog
from psycopg import conninfo, errors
from psycopg.rows import TupleRow

from deploy.local.postgres_server import PostgresServer
from engine.store import append as append_module
from engine.store import sql
from engine.store.append import Terms
from engine.store.chain import first_break
from engine.store.port import Append, Appended, OutcomeUnknown, StoreUnavailable
from engine.store.postgres import Pool, PostgresEventStore
from engine.store.sessions import Connection, connect, fetch
from tests.support.proxy import FaultyProxy
from tests.support.streams import append, event, table_id

QUICK = Terms(lanes=1, statement_s=0.4, patience_s=1.0)
QUICK_POOL = Pool(size=2, statement_s=0.4, patience_s=1.0)


@pytest.fixture
async def proxy(postgres_server: PostgresServer) -> AsyncIterator[FaultyProxy]:
    async with FaultyProxy(postgres_server.port) as proxy:
        yield proxy


@pytest.fixture
async def far_store(store_dsn: str, proxy: FaultyProxy) -> AsyncIterator[PostgresEventStore]:
    """A store behind the proxy that loses patience soon."""
    dsn = conninfo.make_conninfo(store_dsn, port=proxy.port, connect_timeout=2)
    store = await PostgresEventStore.open(dsn, QUICK, QUICK_POOL)
    yield store
    proxy.heal()
    await store.close()


@dataclass
class Player:
    """Appends to one table for ever and notes what was acknowledged."""

    store: PostgresEventStore
    table: UUID = field(default_factory=table_id)
    acknowledged: list[tuple[int, UUID]] = field(default_factory=list)
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def play(self) -> None:
        while True:
            asked = append(self.table, len(self.acknowledged))
            answer = await self._stored(asked)
            self.acknowledged.append((answer.version, asked.command_id))
            self.moved.set()

    async def moved_on(self) -> None:
        """Wait for the next acknowledgement."""
        self.moved.clear()
        await self.moved.wait()

    async def _stored(self, asked: Append) -> Appended:
        while True:
            try:
                return await self.store.append(asked)
            except (OutcomeUnknown, StoreUnavailable):
                await asyncio.sleep(0.02)


async def check_log(store: PostgresEventStore, player: Player) -> None:
    """What was acknowledged is there, once, in its place; at most the one append in flight came on top."""
    stored = await store.read(player.table)
    assert first_break(stored) is None
    log = [(event.version, event.command_id) for event in stored]
    assert log[: len(player.acknowledged)] == player.acknowledged
    assert len(log) <= len(player.acknowledged) + 1
    assert len({command for _, command in log}) == len(log)


async def test_killing_the_server_again_and_again_loses_and_doubles_nothing(
    postgres_server: PostgresServer, store_dsn: str
) -> None:
    store = await PostgresEventStore.open(store_dsn)
    players = [Player(store) for _ in range(30)]
    tasks = [asyncio.create_task(player.play()) for player in players]

    for _ in range(4):
        await asyncio.sleep(0.4)
        await asyncio.to_thread(postgres_server.kill)
        await asyncio.to_thread(postgres_server.start)
        await asyncio.wait_for(players[0].moved_on(), 10)

    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {asyncio.CancelledError}
    for player in players:
        await check_log(store, player)
    await store.close()


async def test_a_link_that_breaks_at_random_loses_and_doubles_nothing(
    far_store: PostgresEventStore, proxy: FaultyProxy
) -> None:
    players = [Player(far_store) for _ in range(10)]
    tasks = [asyncio.create_task(player.play()) for player in players]

    for round_ in range(30):
        await asyncio.sleep(0.02)
        proxy.cut() if round_ % 2 else proxy.lose_answers()

    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    proxy.heal()
    assert {type(outcome) for outcome in outcomes} == {asyncio.CancelledError}
    for player in players:
        await check_log(far_store, player)


async def test_an_append_whose_answer_is_lost_is_answered_all_the_same(
    far_store: PostgresEventStore, proxy: FaultyProxy
) -> None:
    table = table_id()
    await far_store.append(append(table))

    proxy.lose_answers()
    answer = await far_store.append(append(table, 1))

    assert answer.version == 2
    assert len(await far_store.read(table)) == 2


async def test_a_black_hole_ends_in_an_unknown_outcome_soon_and_the_append_can_be_sent_again(
    far_store: PostgresEventStore, proxy: FaultyProxy
) -> None:
    table = table_id()
    await far_store.append(append(table))
    asked = append(table, 1)

    proxy.swallow()
    began = time.monotonic()
    with pytest.raises(OutcomeUnknown):
        await far_store.append(asked)
    assert time.monotonic() - began < 5
    proxy.heal()

    assert (await far_store.append(asked)).version == 2
    assert len(await far_store.read(table)) == 2


async def test_those_behind_a_batch_that_was_given_up_do_not_wait_once_more(
    far_store: PostgresEventStore, proxy: FaultyProxy
) -> None:
    table = table_id()
    await far_store.append(append(table))
    proxy.swallow()

    began = time.monotonic()
    answers = await asyncio.gather(
        *(far_store.append(append(table, version)) for version in range(1, 4)), return_exceptions=True
    )

    assert [type(answer) for answer in answers] == [OutcomeUnknown, StoreUnavailable, StoreUnavailable]
    assert time.monotonic() - began < 5


async def test_a_server_that_lets_nobody_in_is_unavailable_and_then_available(
    far_store: PostgresEventStore, proxy: FaultyProxy
) -> None:
    asked = append(table_id())
    proxy.refuse()

    with pytest.raises(StoreUnavailable):
        await far_store.append(asked)
    with pytest.raises(StoreUnavailable):
        await far_store.head(asked.table_id)

    proxy.heal()
    assert (await far_store.append(asked)).version == 1
    assert (await far_store.head(asked.table_id)).version == 1


async def test_a_read_survives_a_broken_connection(far_store: PostgresEventStore, proxy: FaultyProxy) -> None:
    table = table_id()
    await far_store.append(append(table))

    for _ in range(5):
        proxy.cut()
        assert len(await far_store.read(table)) == 1


async def test_a_read_into_a_black_hole_ends_soon(far_store: PostgresEventStore, proxy: FaultyProxy) -> None:
    table = table_id()
    await far_store.append(append(table))
    proxy.swallow()

    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await far_store.read(table)

    assert time.monotonic() - began < 5


async def test_an_owner_learns_in_time_that_it_cannot_renew(far_store: PostgresEventStore, proxy: FaultyProxy) -> None:
    await far_store.keep_leases("a", 10, 600)
    proxy.swallow()

    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await far_store.keep_leases("a", 10, 600)

    assert time.monotonic() - began < 0.6


async def test_cancelled_readers_leave_the_connections_in_order(store_dsn: str) -> None:
    store = await PostgresEventStore.open(store_dsn, pool=Pool(size=2))
    table = table_id()
    await store.append(append(table))

    for _ in range(20):
        readers = [asyncio.create_task(store.read(table)) for _ in range(4)]
        await asyncio.sleep(0.001)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    assert len(await store.read(table)) == 1
    await store.close()


@contextmanager
def streams_locked(dsn: str) -> Iterator[None]:
    """Let no stream that is there move on."""
    with psycopg.connect(dsn) as other:
        other.execute("select * from engine.stream for update")
        yield


async def test_an_append_that_was_cut_while_it_waited_for_a_lock_is_stored_once(store_dsn: str) -> None:
    store = await PostgresEventStore.open(store_dsn, Terms(lanes=1, statement_s=0.3, patience_s=10))
    table = table_id()
    await store.append(append(table))
    with streams_locked(store_dsn):
        waiting = asyncio.create_task(store.append(append(table, 1)))
        await asyncio.sleep(1)

    assert (await waiting).version == 2
    assert len(await store.read(table)) == 2
    await store.close()


async def test_a_statement_that_hangs_holds_up_nobody_behind_it(store_dsn: str) -> None:
    store = await PostgresEventStore.open(store_dsn)
    table = table_id()
    await store.append(append(table))
    with streams_locked(store_dsn):
        hanging = asyncio.create_task(store.append(append(table, 1)))
        await asyncio.sleep(0.1)
        behind = [(await asyncio.wait_for(store.append(append(table_id())), 2)).version for _ in range(3)]
        assert not hanging.done()

    assert behind == [1, 1, 1]
    assert (await hanging).version == 2
    await store.close()


async def test_a_lane_that_dies_leaves_nobody_waiting(store_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await PostgresEventStore.open(store_dsn, Terms(lanes=1))

    def broken(_: object) -> list[list[object]]:
        raise ZeroDivisionError

    monkeypatch.setattr(append_module, "columns", broken)
    answers = await asyncio.gather(*(store.append(append(table_id())) for _ in range(5)), return_exceptions=True)

    assert {type(answer) for answer in answers} <= {OutcomeUnknown, StoreUnavailable}
    with pytest.raises(StoreUnavailable):
        await store.append(append(table_id()))
    await store.close()


async def test_a_lane_that_dies_leaves_the_others_at_work(store_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await PostgresEventStore.open(store_dsn, Terms(lanes=2))
    with monkeypatch.context() as broken:
        broken.setattr(append_module, "columns", lambda _: 1 // 0)
        with pytest.raises((OutcomeUnknown, StoreUnavailable)):
            await store.append(append(table_id()))

    assert (await asyncio.wait_for(store.append(append(table_id())), 10)).version == 1
    await store.close()


async def test_a_server_that_cannot_tell_why_it_refused_is_asked_again(
    store_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await PostgresEventStore.open(store_dsn, Terms(lanes=1))
    table, command = table_id(), append(table_id())
    await store.append(command)
    asked = 0

    async def short_of_memory(connection: Connection, statement: LiteralString, *how: Any) -> list[TupleRow]:
        nonlocal asked
        asked += statement == sql.REFUSED
        if statement == sql.REFUSED and asked <= 2:
            raise errors.OutOfMemory
        return await fetch(connection, statement, *how)

    monkeypatch.setattr(append_module, "fetch", short_of_memory)
    answers = await asyncio.gather(store.append(command), store.append(append(table)))

    assert {answer.version for answer in answers} == {1}
    assert asked == 3
    assert len(await store.read(command.table_id)) == len(await store.read(table)) == 1
    await store.close()


async def test_a_connection_that_is_gone_before_a_statement_is_sent_is_replaced(
    store_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections: list[Connection] = []

    async def noted(*how: Any) -> Connection:
        connections.append(await connect(*how))
        return connections[-1]

    monkeypatch.setattr(append_module, "connect", noted)
    store = await PostgresEventStore.open(store_dsn, Terms(lanes=1))
    table = table_id()
    await store.append(append(table))
    await connections[0].close()

    with structlog.testing.capture_logs() as told:
        assert (await store.append(append(table, 1))).version == 2

    assert len(connections) == 2
    assert not told
    await store.close()


async def test_what_the_database_refuses_is_told_without_the_row(store_dsn: str) -> None:
    with psycopg.connect(store_dsn) as owner:
        owner.execute("alter table engine.event add check (octet_length(payload) < 10)")
    store = await PostgresEventStore.open(store_dsn)

    with structlog.testing.capture_logs() as told, pytest.raises(StoreUnavailable, match="23514"):
        await store.append(append(table_id(), 0, event(b"a hand of cards")))

    (refused,) = [entry for entry in told if entry["event"] == "append refused by the database"]
    assert "check constraint" in refused["error"]
    assert b"a hand of cards".hex() not in repr(told)
    await store.close()
