"""Ranking as its readers meet it: facts from a real bus, ratings from a real port, two replicas."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING
from uuid import uuid4

import grpc
import pytest
from gouji.engine.v1.facts_pb2 import Fact
from gouji.ranking.v1 import facts_pb2
from gouji.ranking.v1 import ranking_pb2 as pb
from gouji.ranking.v1 import ranking_pb2_grpc as rpc
from nats import connect
from prometheus_client import CollectorRegistry
from pydantic import SecretStr

from deploy.local.nats_server import NatsServer
from engine.runtime import postgres, subjects
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.intake import Intake
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.streams import stream_of
from services.ranking.board import Board, RatingNotFound
from services.ranking.journal import Entry
from services.ranking.main import compose, rebuild_ratings, start_over, start_ranking
from services.ranking.settings import RankingSettings
from tests.fixtures.facts import Table
from tests.fixtures.processes import PUBLIC_KEY, StartFailed, bearer, dialled, running
from tests.fixtures.schemas import as_service, migrated
from tests.support.engine_bench import eventually

if TYPE_CHECKING:
    Stub = rpc.RankingServiceAsyncStub

READER = bearer("reader")
SIX = tuple("abcdef")


def settings_for(dsn: str, nats_url: str) -> RankingSettings:
    return RankingSettings(
        postgres_dsn=SecretStr(dsn),
        nats_servers=nats_url,
        token_public_keys=PUBLIC_KEY.decode(),
        player_rate=100_000,
        player_burst=100_000,
        address_rate=100_000,
        address_burst=100_000,
    )


@pytest.fixture
async def dsn(empty_database: str) -> str:
    """The database as the service's own role sees it."""
    migrated(empty_database, "ranking")
    return as_service(empty_database, "ranking")


@pytest.fixture
async def stubs(dsn: str, nats: str) -> AsyncIterator[Sequence[Stub]]:
    """Two replicas on one database and one bus."""
    async with AsyncExitStack() as stack:
        addresses = [await stack.enter_async_context(running(compose, settings_for(dsn, nats))) for _ in range(2)]
        channels = [await stack.enter_async_context(dialled(address)) for address in addresses]
        yield [rpc.RankingServiceStub(channel) for channel in channels]


@pytest.fixture
async def nats(nats_server: NatsServer, nats_url: str) -> str:
    """The bus as the service's own account sees it; what a test leaves there is removed."""
    del nats_url
    return nats_server.url("ranking")


@pytest.fixture
async def bus(nats_url: str) -> AsyncIterator[NatsBus]:
    bus = await NatsBus.connect(NatsOptions((nats_url,)))
    yield bus
    await bus.close()


async def tell(bus: NatsBus, facts: Sequence[Fact], *, again: bool = False) -> None:
    """Publish facts in this order; `again` as messages of their own, as after a bus that forgot."""
    for fact in facts:
        event_id = f"{fact.event_id}{' again' if again else ''}"
        await bus.publish_fact(f"gouji.fact.{fact.table_id}", fact.SerializeToString(), event_id=event_id)


async def rating(stub: Stub, player_id: str) -> pb.Rating:
    return (await stub.GetRating(pb.GetRatingRequest(player_id=player_id), metadata=READER)).rating


async def rating_after(stub: Stub, player_id: str, *, deals: int = 0, matches: int = 0) -> pb.Rating:
    """The rating as soon as so much is counted."""
    async with asyncio.timeout(20):
        while True:
            try:
                now = await rating(stub, player_id)
                if now.deals >= deals and now.matches >= matches:
                    return now
            except grpc.aio.AioRpcError as unknown:
                assert unknown.code() is grpc.StatusCode.NOT_FOUND  # noqa: PT017 - it may come yet
            await asyncio.sleep(0.02)


async def board(stub: Stub, page_size: int) -> list[pb.LeaderboardEntry]:
    entries: list[pb.LeaderboardEntry] = []
    token = ""
    while True:
        request = pb.ListLeaderboardRequest(page_size=page_size, page_token=token)
        page = await stub.ListLeaderboard(request, metadata=READER)
        entries += page.entries
        token = page.next_page_token
        if not token:
            return entries


def season(seed: int, *, tables: int, deals: int, players: int) -> list[list[Fact]]:
    """Facts of tables that share players, each table's in order."""
    chance = random.Random(seed)
    names = [f"p{number:02}" for number in range(players)]
    games = [Table(uuid4(), chance.sample(names, 6)) for _ in range(tables)]
    return [
        [
            table.opened(),
            *(table.deal(chance.sample(range(6), 6), *chance.choice([(6, -6), (-2, 2)])) for _ in range(deals)),
            table.finished(),
            table.closed(),
        ]
        for table in games
    ]


def interleaved(tables: Sequence[Sequence[Fact]], seed: int) -> list[Fact]:
    """All facts in one order that keeps each table's."""
    chance = random.Random(seed)
    left = [list(facts) for facts in tables]
    told = []
    while any(left):
        told.append(chance.choice([facts for facts in left if facts]).pop(0))
    return told


async def everything(dsn: str) -> list[str]:
    async with postgres.pool(dsn, "ranking") as pool, pool.connection() as connection:
        cursor = await connection.execute("select rating::text from rating order by player_id")
        return [row for (row,) in await cursor.fetchall()]


async def test_a_deal_is_rated_and_told_of(stubs: Sequence[Stub], bus: NatsBus) -> None:
    table = Table(uuid4(), SIX)
    await tell(bus, [table.opened(), table.deal([0, 1, 2, 3, 4, 5]), table.finished()])

    winner = await rating_after(stubs[0], "a", matches=1)
    loser = await rating(stubs[1], "f")

    assert winner.rating > loser.rating
    assert (winner.deals, winner.matches) == (1, 1)
    told = await last_told(bus, "a")
    assert (told.mu, told.sigma, told.rating) == (winner.mu, winner.sigma, winner.rating)
    assert told.cause == f"{table.table_id}:20"


async def last_told(bus: NatsBus, player_id: str) -> facts_pb2.RatingChanged:
    async with asyncio.timeout(10):
        while (last := await bus.last_fact(subjects.rating(player_id))) is None:  # noqa: ASYNC110 - another process's doing
            await asyncio.sleep(0.02)
    return facts_pb2.RatingChanged.FromString(last.payload)


async def test_facts_told_twice_and_out_of_order_count_once(stubs: Sequence[Stub], bus: NatsBus) -> None:
    table = Table(uuid4(), SIX)
    opened, first, second, third = (
        table.opened(),
        table.deal([0, 1, 2, 3, 4, 5]),
        table.deal([1, 0, 2, 3, 4, 5]),
        table.deal([2, 1, 0, 3, 4, 5]),
    )
    await tell(bus, [opened, second, first, third])
    await tell(bus, [third, second, first, opened], again=True)
    end = Table(uuid4(), SIX)
    await tell(bus, [end.finished()])

    await rating_after(stubs[0], "a", deals=3, matches=1)

    await asyncio.sleep(0.5)
    assert (await rating(stubs[0], "a")).deals == 3


async def test_a_fact_that_the_bus_lost_holds_up_its_table_alone_and_counts_once_when_told_again(
    dsn: str, nats: str, nats_url: str, bus: NatsBus
) -> None:
    broken, whole = Table(uuid4(), SIX), Table(uuid4(), tuple("ghijkl"))
    facts = [broken.opened(), *(broken.deal([0, 1, 2, 3, 4, 5]) for _ in range(3)), broken.finished()]
    await tell(bus, facts)
    await lose(nats_url, facts[2])
    await tell(bus, [whole.opened(), whole.deal([0, 1, 2, 3, 4, 5]), whole.finished()])
    life, registry = Lifecycle(), CollectorRegistry()

    def parked_sources() -> float | None:
        return registry.get_sample_value("gouji_ranking_intake_parked_sources")

    async with postgres.pool(dsn, "ranking") as pool:
        ranking_bus = await NatsBus.connect(NatsOptions((nats,), pause=0.1))
        settings = settings_for(dsn, nats).model_copy(update={"ranking_patience": 2})
        ranking = await start_ranking(life, pool, ranking_bus, settings, registry)
        await counted(ranking.board, "g", deals=1, matches=1)
        await counted(ranking.board, "a", deals=1)
        await eventually(lambda: len_is(ranking.intake, 2))
        assert parked_sources() == 1

        await tell(bus, [facts[2]], again=True)
        await counted(ranking.board, "a", deals=3, matches=1)
        await tell(bus, facts, again=True)
        await tell(bus, [whole.closed()])
        await asyncio.sleep(0.5)

        standing = (await ranking.board.find("a")).standing
        assert (standing.deals, standing.matches, parked_sources()) == (3, 1, 0)
        await life._stop_all()
        await ranking_bus.close()


async def lose(nats_url: str, fact: Fact) -> None:
    """Delete a fact from the stream, as if it had never got there."""
    connection = await connect(nats_url)
    stream = stream_of(subjects.FACTS).name
    last = await connection.jetstream().get_last_msg(stream, f"gouji.fact.{fact.table_id}")
    assert last.seq is not None
    behind = Fact.FromString(last.data or b"").position - fact.position
    assert await connection.jetstream().delete_msg(stream, last.seq - behind)
    await connection.close()


async def counted(board: Board, player_id: str, *, deals: int, matches: int = 0) -> None:
    """Wait until exactly so much is counted."""

    async def is_counted() -> bool:
        try:
            standing = (await board.find(player_id)).standing
        except RatingNotFound:
            return False
        return (standing.deals, standing.matches) == (deals, matches)

    await eventually(is_counted, within=20)


async def len_is(intake: Intake[Entry], parked: int) -> bool:
    return len(await intake.parked()) == parked


async def test_the_live_ratings_of_two_replicas_equal_a_rebuild(dsn: str, stubs: Sequence[Stub], bus: NatsBus) -> None:
    tables = season(3, tables=8, deals=5, players=16)
    await tell(bus, interleaved(tables, seed=4))
    for facts in tables:
        for player_id in facts[0].table_opened.players:
            played = sum(player_id in other[0].table_opened.players for other in tables)
            await rating_after(stubs[0], player_id, matches=played)
    live = await everything(dsn)

    rebuilt = await rebuild_ratings(dsn)

    assert rebuilt.mended == 0
    assert rebuilt.results == 8 * 6
    assert await everything(dsn) == live


async def test_a_service_that_starts_over_counts_the_stream_to_the_same_ratings(
    dsn: str, empty_database: str, nats: str, bus: NatsBus
) -> None:
    tables = season(5, tables=4, deals=3, players=10)
    await tell(bus, interleaved(tables, seed=6))
    end = Table(uuid4(), SIX)
    await tell(bus, [end.finished()])

    async def counted() -> list[str]:
        async with running(compose, settings_for(dsn, nats)) as address, dialled(address) as channel:
            await rating_after(rpc.RankingServiceStub(channel), "a", matches=1)
        return await everything(dsn)

    first = await counted()
    await start_over(empty_database)
    assert await everything(dsn) == []

    assert await counted() == first


async def test_pages_have_neither_gaps_nor_doubles_at_ties(dsn: str, stubs: Sequence[Stub]) -> None:
    async with postgres.pool(dsn, "ranking") as pool, pool.connection() as connection:
        await connection.execute(
            "insert into rating select 'p' || n, 25, 5, 1000 + n % 4, 1, 0 from generate_series(1, 53) as n"
        )

    everyone = await board(stubs[0], 200)

    ranks = [(entry.rank, entry.rating.player_id) for entry in everyone]
    assert [rank for rank, _ in ranks] == list(range(1, 54))
    assert len({player_id for _, player_id in ranks}) == 53
    for page_size in (1, 2, 7, 52, 53):
        assert [(entry.rank, entry.rating.player_id) for entry in await board(stubs[1], page_size)] == ranks


async def test_the_board_is_best_first_and_then_by_player_id(stubs: Sequence[Stub], bus: NatsBus) -> None:
    for facts in season(9, tables=3, deals=2, players=9):
        await tell(bus, facts)
    end = Table(uuid4(), SIX)
    await tell(bus, [end.finished()])
    await rating_after(stubs[0], "a", matches=1)

    entries = await board(stubs[0], 4)

    keys = [(-entry.rating.rating, entry.rating.player_id) for entry in entries]
    assert keys == sorted(keys)


async def test_a_page_is_never_longer_than_the_bound(dsn: str, stubs: Sequence[Stub]) -> None:
    async with postgres.pool(dsn, "ranking") as pool, pool.connection() as connection:
        await connection.execute("insert into rating select 'p' || n, 25, 5, 0, 1, 0 from generate_series(1, 300) as n")

    async def length(page_size: int) -> int:
        page = await stubs[0].ListLeaderboard(pb.ListLeaderboardRequest(page_size=page_size), metadata=READER)
        return len(page.entries)

    assert [await length(size) for size in (0, 1, 200, 201, 4_000_000_000)] == [50, 1, 200, 200, 200]


async def test_an_empty_board_has_one_empty_page(stubs: Sequence[Stub]) -> None:
    assert await board(stubs[0], 10) == []


@pytest.mark.parametrize("token", ["x", "====", "MTox", "\u20ac", "OTk5OTk5OTk5OTk6MTp4", "A" * 5000])
async def test_a_token_that_was_not_given_out_is_the_callers_fault(stubs: Sequence[Stub], token: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await stubs[0].ListLeaderboard(pb.ListLeaderboardRequest(page_token=token), metadata=READER)

    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("player_id", "code"),
    [
        ("nobody", grpc.StatusCode.NOT_FOUND),
        ("", grpc.StatusCode.INVALID_ARGUMENT),
        ("\x00", grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
async def test_who_has_no_rating_is_not_found(stubs: Sequence[Stub], player_id: str, code: grpc.StatusCode) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await rating(stubs[0], player_id)

    assert refusal.value.code() is code


async def test_a_poisoned_table_stops_nobody_else(stubs: Sequence[Stub], bus: NatsBus) -> None:
    sick, well = Table(uuid4(), SIX), Table(uuid4(), SIX)
    await tell(bus, [sick.deal([9, 9, 9, 9, 9, 9]), sick.deal([0, 1, 2, 3, 4, 5])])
    await bus.publish_fact(subjects.fact(uuid4()), b"\xff\xff\xff", event_id="garbage")

    await tell(bus, [well.deal([0, 1, 2, 3, 4, 5]), well.deal([0, 1, 2, 3, 4, 5])])

    assert (await rating_after(stubs[0], "a", deals=2)).deals == 2


async def test_in_production_a_database_that_forgets_is_refused(dsn: str, nats: str) -> None:
    """That of tests does not wait for the disk."""
    with pytest.raises(StartFailed):
        async with running(compose, settings_for(dsn, nats).model_copy(update={"environment": "production"})):
            pass


async def test_an_unmigrated_database_is_refused(empty_database: str, nats: str) -> None:
    with pytest.raises(StartFailed):
        async with running(compose, settings_for(empty_database, nats)):
            pass
