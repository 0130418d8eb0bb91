"""Results take effect once, in order per table, and the ratings are a fold of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from uuid import uuid4

import pytest
from gouji.engine.v1 import facts_pb2
from gouji.ranking.v1 import facts_pb2 as rating_facts
from prometheus_client import CollectorRegistry
from psycopg_pool import AsyncConnectionPool

from engine.runtime.bus import FactMessage
from engine.runtime.gate import PREVIOUS_HASH, Hole
from engine.runtime.intake import Intake, IntakeMeasures
from services.ranking import wire
from services.ranking.board import Board, RatingNotFound
from services.ranking.journal import Entry, Journal
from services.ranking.rebuild import Rebuilt, rebuild, start_over
from tests.fixtures.facts import Table, delivered

SIX = ("ann", "bob", "cid", "dan", "eve", "fay")


def intake_on(pool: AsyncConnectionPool, registry: CollectorRegistry | None = None) -> Intake[Entry]:
    measures = IntakeMeasures(registry or CollectorRegistry(), "ranking")
    return Intake(pool, wire.entry_from_fact, Journal(wire.announce).enter, measures, patience=3)


@pytest.fixture
def intake(ranking_pool: AsyncConnectionPool) -> Intake[Entry]:
    return intake_on(ranking_pool)


async def rows(pool: AsyncConnectionPool) -> Sequence[str]:
    """All ratings as text: two tables with the same rows are equal to the last byte."""
    async with pool.connection() as connection:
        cursor = await connection.execute("select rating::text from rating order by player_id")
        return [row for (row,) in await cursor.fetchall()]


async def told(pool: AsyncConnectionPool) -> list[rating_facts.RatingChanged]:
    async with pool.connection() as connection:
        cursor = await connection.execute("select payload from outbox order by subject, position")
        return [rating_facts.RatingChanged.FromString(payload) for (payload,) in await cursor.fetchall()]


async def test_a_deal_rates_all_six_and_tells_of_each(ranking_pool: AsyncConnectionPool, intake: Intake[Entry]) -> None:
    deal = Table(uuid4(), SIX).deal([0, 1, 2, 3, 4, 5])

    await intake.take(delivered(deal))

    board = Board(ranking_pool)
    standings = [(await board.find(player_id)).standing for player_id in SIX]
    assert [standing.skill.mu for standing in standings] == sorted((s.skill.mu for s in standings), reverse=True)
    assert {standing.deals for standing in standings} == {1}
    facts = await told(ranking_pool)
    assert {fact.player_id for fact in facts} == set(SIX)
    assert {fact.cause for fact in facts} == {deal.event_id}


async def test_a_fact_delivered_again_counts_once(ranking_pool: AsyncConnectionPool, intake: Intake[Entry]) -> None:
    deal = delivered(Table(uuid4(), SIX).deal([5, 4, 3, 2, 1, 0]))
    await intake.take(deal)
    once = await rows(ranking_pool)

    await asyncio.gather(*(intake.take(deal) for _ in range(8)))

    assert await rows(ranking_pool) == once


async def test_a_fact_that_comes_too_early_waits_for_the_one_before(
    ranking_pool: AsyncConnectionPool, intake: Intake[Entry]
) -> None:
    table = Table(uuid4(), SIX)
    first, second = delivered(table.deal([0, 1, 2, 3, 4, 5])), delivered(table.deal([1, 0, 2, 3, 4, 5]), sequence=2)

    with pytest.raises(Hole):
        await intake.take(second)
    await intake.take(first)
    await intake.take(second)

    assert (await Board(ranking_pool).find("ann")).standing.deals == 2


async def test_a_fact_parked_for_its_predecessor_counts_when_that_one_comes(
    ranking_pool: AsyncConnectionPool, intake: Intake[Entry]
) -> None:
    table = Table(uuid4(), SIX)
    first, second, third = (delivered(table.deal([0, 1, 2, 3, 4, 5]), sequence=n, deliveries=3) for n in (1, 2, 3))
    await intake.take(third)
    await intake.take(second)

    await intake.take(first)

    assert (await Board(ranking_pool).find("ann")).standing.deals == 3


async def test_a_poisoned_table_is_parked_and_the_others_go_on(ranking_pool: AsyncConnectionPool) -> None:
    registry = CollectorRegistry()
    intake = intake_on(ranking_pool, registry)
    sick, well = Table(uuid4(), SIX), Table(uuid4(), SIX)
    sequence = count(1)

    await intake.take(delivered(sick.deal([0, 0, 0, 0, 0, 0]), sequence=next(sequence)))
    await intake.take(delivered(sick.deal([0, 1, 2, 3, 4, 5]), sequence=next(sequence)))
    await intake.take(delivered(well.deal([0, 1, 2, 3, 4, 5]), sequence=next(sequence)))

    assert (await Board(ranking_pool).find("ann")).standing.deals == 1
    assert registry.get_sample_value("gouji_ranking_intake_parked_sources") == 1
    assert registry.get_sample_value("gouji_ranking_intake_facts_total", {"result": "parked"}) == 2


async def test_a_fact_that_nobody_can_read_is_parked(ranking_pool: AsyncConnectionPool) -> None:
    registry = CollectorRegistry()
    fact = delivered(Table(uuid4(), SIX).opened())

    await intake_on(ranking_pool, registry).take(type(fact)(fact.subject, b"\xff\xff", {}, 1, 1))

    assert registry.get_sample_value("gouji_ranking_intake_parked_sources") == 1


async def test_a_released_table_counts_what_it_missed(ranking_pool: AsyncConnectionPool) -> None:
    table = Table(uuid4(), SIX)
    facts = [delivered(table.deal([0, 1, 2, 3, 4, 5]), sequence=n) for n in (1, 2)]
    broken = intake_on(ranking_pool)

    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    broken._effect = fail
    for fact in facts:
        await broken.take(type(fact)(fact.subject, fact.payload, {}, fact.sequence, deliveries=3))

    assert await intake_on(ranking_pool).release(table.subject) == 2
    assert (await Board(ranking_pool).find("ann")).standing.deals == 2


async def test_a_forked_table_raises_the_alarm_and_counts_no_more_while_others_do(
    ranking_pool: AsyncConnectionPool,
) -> None:
    registry = CollectorRegistry()
    intake = intake_on(ranking_pool, registry)
    table, other, sequence = Table(uuid4(), SIX), Table(uuid4(), SIX), count(1)

    def told(fact: facts_pb2.Fact, previous_hash: str) -> FactMessage:
        return replace(delivered(fact, sequence=next(sequence)), headers={PREVIOUS_HASH: previous_hash})

    first = table.deal([0, 1, 2, 3, 4, 5])
    await intake.take(told(first, "aa"))
    await intake.take(told(first, "aa"))
    assert registry.get_sample_value("gouji_ranking_intake_forked_sources") in {None, 0}

    await intake.take(told(first, "bb"))
    await intake.take(told(table.deal([0, 1, 2, 3, 4, 5]), "cc"))
    await intake.take(told(other.deal([0, 1, 2, 3, 4, 5]), "dd"))

    assert (await Board(ranking_pool).find("ann")).standing.deals == 2
    assert registry.get_sample_value("gouji_ranking_intake_forked_sources") == 1
    assert [(fact.source, fact.position) for fact in await intake.parked()] == [(table.subject, 1), (table.subject, 2)]
    assert await intake.release(table.subject) == 0
    assert (await Board(ranking_pool).find("ann")).standing.deals == 2


@pytest.mark.parametrize("kind", ["void", "unranked", "five players"])
async def test_what_is_no_ranked_result_rates_nobody(
    ranking_pool: AsyncConnectionPool, intake: Intake[Entry], kind: str
) -> None:
    table = Table(uuid4(), SIX if kind != "five players" else (*SIX[:5], ""), ranked=kind != "unranked")

    await intake.take(delivered(table.void() if kind == "void" else table.deal([0, 1, 2, 3, 4, 5])))
    await intake.take(delivered(table.closed(), sequence=2))

    with pytest.raises(RatingNotFound):
        await Board(ranking_pool).find("ann")


async def test_a_match_is_counted_and_moves_no_rating(ranking_pool: AsyncConnectionPool, intake: Intake[Entry]) -> None:
    table = Table(uuid4(), SIX)
    await intake.take(delivered(table.deal([0, 1, 2, 3, 4, 5])))
    before = (await Board(ranking_pool).find("ann")).standing

    await intake.take(delivered(table.finished(), sequence=2))

    after = (await Board(ranking_pool).find("ann")).standing
    assert (after.matches, after.deals, after.skill) == (1, 1, before.skill)
    assert len(await told(ranking_pool)) == 6


def season(seed: int, tables: int = 6, deals: int = 5) -> list[list[facts_pb2.Fact]]:
    """Facts of tables that share players."""
    chance = random.Random(seed)
    players = [f"p{number}" for number in range(14)]
    facts = []
    for _ in range(tables):
        table = Table(uuid4(), chance.sample(players, 6))
        played = [table.deal(chance.sample(range(6), 6), *chance.choice([(6, -6), (-2, 2)])) for _ in range(deals)]
        facts.append([table.opened(), *played, table.finished(), table.closed()])
        table.position = 0
    return facts


def numbered(tables: list[list[facts_pb2.Fact]]) -> list[facts_pb2.Fact]:
    for table in tables:
        for position, fact in enumerate(table, 1):
            fact.position = position
            fact.event_id = f"{fact.table_id}:{position * 10}"
    return [fact for table in tables for fact in table]


async def test_tables_that_share_players_rebuild_to_the_same_bytes(
    ranking_pool: AsyncConnectionPool, intake: Intake[Entry]
) -> None:
    tables = season(seed=7)
    sequence = count(1)
    numbered(tables)

    async def play(table: list[facts_pb2.Fact]) -> None:
        for fact in table:
            await intake.take(delivered(fact, sequence=next(sequence)))

    await asyncio.gather(*(play(table) for table in tables))
    live = await rows(ranking_pool)

    assert (await rebuild(ranking_pool, wire.entry_from_fact)).mended == 0
    assert await rows(ranking_pool) == live


async def test_a_rebuild_mends_what_differs(ranking_pool: AsyncConnectionPool, intake: Intake[Entry]) -> None:
    await intake.take(delivered(Table(uuid4(), SIX).deal([0, 1, 2, 3, 4, 5])))
    right = await rows(ranking_pool)
    async with ranking_pool.connection() as connection:
        await connection.execute("update rating set mu = mu + 1 where player_id = 'ann'")
        await connection.execute("update rating set shown = 9999 where player_id = 'bob'")
        await connection.execute("delete from rating where player_id = 'cid'")
        await connection.execute("insert into rating values ('zoe', 40, 1, 2480, 9, 9)")

    assert await rebuild(ranking_pool, wire.entry_from_fact) == Rebuilt(results=1, players=6, mended=4)
    assert await rows(ranking_pool) == right


async def test_starting_over_and_counting_the_stream_again_gives_the_same_bytes(
    ranking_pool: AsyncConnectionPool, intake: Intake[Entry]
) -> None:
    stream = [delivered(fact, sequence=number) for number, fact in enumerate(numbered(season(seed=11)), 1)]
    for fact in stream:
        await intake.take(fact)
    live = await rows(ranking_pool)

    await start_over(ranking_pool)
    assert await rows(ranking_pool) == []
    for fact in stream:
        await intake.take(fact)

    assert await rows(ranking_pool) == live
