"""A service's pool: its schema, its bounds, and what it makes of a database out of reach."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import LiteralString

import psycopg
import pytest
from psycopg import conninfo
from psycopg_pool import PoolTimeout

from engine.runtime import postgres
from engine.runtime.faults import Busy, Unavailable
from engine.runtime.postgres import Pool, reaching
from tests.support.proxy import FaultyProxy


@pytest.fixture
async def link(database: str) -> AsyncIterator[FaultyProxy]:
    async with FaultyProxy(int(conninfo.conninfo_to_dict(database)["port"] or 0)) as link:
        yield link


@pytest.fixture
async def pool(database: str, link: FaultyProxy) -> AsyncIterator[Pool]:
    async with await psycopg.AsyncConnection.connect(database) as connection:
        await connection.execute("create schema one")
        await connection.execute("create table one.thing (id int primary key)")
    through = conninfo.make_conninfo(database, port=link.port)
    async with postgres.pool(through, "one", size=1, wait_s=1.0, statement_ms=2000, transaction_s=0.5) as pool:
        yield pool


async def count(pool: Pool) -> int:
    with reaching():
        async with pool.connection() as connection:
            cursor = await connection.execute("select count(*) from thing")
            (number,) = await cursor.fetchone() or (0,)
    return int(number)


async def insert_and(pool: Pool, statement: LiteralString) -> None:
    with reaching():
        async with pool.connection() as connection:
            await connection.execute("insert into thing values (1)")
            await connection.execute(statement)


async def test_a_server_that_takes_no_writes_is_passed_over(database: str) -> None:
    name = conninfo.conninfo_to_dict(database)["dbname"]
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute(f'alter database "{name}" set default_transaction_read_only = on')
    passing = postgres.pool(database, "one", wait_s=0.5)

    with pytest.raises(PoolTimeout):
        await passing.open(wait=True, timeout=0.5)
    await passing.close()


async def count_at_last(pool: Pool) -> int:
    while True:
        try:
            return await count(pool)
        except Unavailable:
            await asyncio.sleep(0.05)


async def test_a_transaction_sees_its_own_schema_and_commits(pool: Pool) -> None:
    await insert_and(pool, "select 1")

    assert await count(pool) == 1


async def test_a_transaction_that_raises_leaves_nothing(pool: Pool) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        await insert_and(pool, "select 1 / 0")

    assert await count(pool) == 0


async def test_a_transaction_that_takes_too_long_is_cut_and_leaves_nothing(pool: Pool) -> None:
    async with asyncio.timeout(1.5):
        with pytest.raises(Unavailable):
            await insert_and(pool, "select pg_sleep(1)")

    assert await count_at_last(pool) == 0


@pytest.mark.parametrize("after_s", [0.0, 0.005, 0.02, 0.1])
async def test_a_caller_who_goes_away_in_the_middle_leaves_nothing_and_a_connection_in_order(
    pool: Pool, after_s: float
) -> None:
    leaving = asyncio.create_task(insert_and(pool, "select pg_sleep(0.3)"))
    await asyncio.sleep(after_s)
    leaving.cancel()
    await asyncio.wait({leaving})

    assert leaving.cancelled()
    assert await count(pool) == 0
    await insert_and(pool, "select 1")
    assert await count(pool) == 1


async def test_a_caller_who_goes_away_on_a_dead_link_is_let_go_in_time(pool: Pool, link: FaultyProxy) -> None:
    assert await count(pool) == 0
    link.swallow()
    leaving = asyncio.create_task(insert_and(pool, "select 1"))
    await asyncio.sleep(0.1)
    leaving.cancel()

    async with asyncio.timeout(3):
        await asyncio.wait({leaving})
    link.heal()
    assert await count_at_last(pool) == 0


async def test_a_dead_link_is_given_up_in_time_and_replaced(pool: Pool, link: FaultyProxy) -> None:
    assert await count(pool) == 0
    link.swallow()

    async with asyncio.timeout(2):
        with pytest.raises(Unavailable):
            await count(pool)

    link.heal()
    async with asyncio.timeout(20):
        assert await count_at_last(pool) == 0


async def test_a_link_that_is_cut_is_told_and_replaced(pool: Pool, link: FaultyProxy) -> None:
    assert await count(pool) == 0
    link.cut()

    with pytest.raises(Unavailable):
        await count(pool)
    assert await count_at_last(pool) == 0


async def test_who_waits_too_long_for_a_connection_is_told(pool: Pool) -> None:
    pool.transaction_s = None
    async with pool.connection():
        with pytest.raises(Unavailable):
            await count(pool)


async def test_too_many_who_wait_are_turned_away(pool: Pool) -> None:
    pool.transaction_s = None
    async with pool.connection():
        waiting = [asyncio.create_task(count(pool)) for _ in range(64)]
        await asyncio.sleep(0.1)

        with pytest.raises(Busy):
            await count(pool)

    assert await asyncio.gather(*waiting) == [0] * 64
