"""The gate: each fact of a source takes effect once, in order, whatever is delivered how often."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from engine.runtime.gate import FORKS, INBOX, Fork, Hole, Seen, Verdict, admit, judge, note_fork


@pytest.mark.parametrize(("last", "position"), [(0, 1), (6, 7)])
def test_the_next_fact_is_applied(last: int, position: int) -> None:
    assert judge("table", Seen(last), position) is Verdict.APPLY


@pytest.mark.parametrize(("last", "position"), [(1, 1), (7, 3)])
def test_a_fact_from_before_is_a_duplicate(last: int, position: int) -> None:
    assert judge("table", Seen(last), position) is Verdict.DUPLICATE


@pytest.mark.parametrize(("last", "position"), [(0, 2), (7, 9)])
def test_a_fact_from_beyond_the_next_leaves_a_hole(last: int, position: int) -> None:
    with pytest.raises(Hole) as hole:
        judge("table", Seen(last), position)

    assert (hole.value.source, hole.value.last, hole.value.position) == ("table", last, position)


def test_the_newest_position_with_another_hash_before_it_is_a_fork() -> None:
    with pytest.raises(Fork) as fork:
        judge("table", Seen(7, "aa"), 7, "bb")

    assert (fork.value.source, fork.value.position) == ("table", 7)


@pytest.mark.parametrize(
    ("seen", "position", "previous_hash"),
    [(Seen(7, "aa"), 7, "aa"), (Seen(7, "aa"), 7, ""), (Seen(7), 7, "bb"), (Seen(7, "aa"), 6, "bb")],
)
def test_what_tells_of_no_other_hash_is_a_duplicate(seen: Seen, position: int, previous_hash: str) -> None:
    assert judge("table", seen, position, previous_hash) is Verdict.DUPLICATE


@pytest.mark.parametrize("position", [8, 9])
def test_nothing_new_of_a_forked_source_takes_effect(position: int) -> None:
    with pytest.raises(Fork):
        judge("table", Seen(7, "aa", forked=True), position, "cc")


@pytest.fixture
async def dsn(database: str) -> str:
    async with await AsyncConnection.connect(database) as connection:
        await connection.execute(INBOX.encode())
        await connection.execute(FORKS.encode())
        await connection.execute("create table effect (source text, position bigint)")
    return database


async def apply(dsn: str, source: str, position: int) -> Verdict:
    async with await AsyncConnection.connect(dsn) as connection:
        return await _apply(connection, source, position)


async def _apply(connection: AsyncConnection[TupleRow], source: str, position: int) -> Verdict:
    verdict = await admit(connection, source, position)
    if verdict is Verdict.APPLY:
        await connection.execute("insert into effect values (%s, %s)", (source, position))
    return verdict


async def effects(dsn: str, source: str) -> list[int]:
    async with await AsyncConnection.connect(dsn) as connection:
        cursor = await connection.execute("select position from effect where source = %s order by ctid", (source,))
        return [position for (position,) in await cursor.fetchall()]


async def test_effects_follow_the_order_of_positions(dsn: str) -> None:
    deliveries = [position * 5 % 9 for position in range(1, 9) for _ in range(3)]

    while deliveries:
        position = deliveries.pop(0)
        try:
            await apply(dsn, "one", position)
        except Hole:
            deliveries.append(position)

    assert await effects(dsn, "one") == list(range(1, 9))


async def test_sources_do_not_wait_for_each_other(dsn: str) -> None:
    assert await apply(dsn, "one", 1) is Verdict.APPLY
    assert await apply(dsn, "two", 1) is Verdict.APPLY


async def test_of_two_consumers_at_once_one_applies_a_fact(dsn: str) -> None:
    verdicts = await asyncio.gather(*(apply(dsn, "one", 1) for _ in range(8)))

    assert sorted(verdict.name for verdict in verdicts) == ["APPLY"] + ["DUPLICATE"] * 7
    assert await effects(dsn, "one") == [1]


async def test_an_effect_that_fails_leaves_the_position_where_it_was(dsn: str) -> None:
    async with await AsyncConnection.connect(dsn) as connection:
        await _apply(connection, "one", 1)
        with pytest.raises(psycopg.errors.UndefinedTable):
            await connection.execute("insert into no_such_table values (1)")
        await connection.rollback()

    assert await apply(dsn, "one", 1) is Verdict.APPLY
    assert await effects(dsn, "one") == [1]


async def test_a_fork_is_seen_by_the_hash_that_was_kept_and_stays(dsn: str) -> None:
    async with await AsyncConnection.connect(dsn) as connection:
        await admit(connection, "one", 1, "aa")
        await admit(connection, "two", 1, "aa")
    async with await AsyncConnection.connect(dsn) as connection:
        with pytest.raises(Fork):
            await admit(connection, "one", 1, "bb")
        await note_fork(connection, "one")

    with pytest.raises(Fork):
        await apply(dsn, "one", 2)
    assert await apply(dsn, "two", 2) is Verdict.APPLY
