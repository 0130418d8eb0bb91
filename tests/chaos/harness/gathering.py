"""Gathering the evidence when all is quiet: the log by fresh processes, the bus and ranking's database past every proxy.

Law: reads only, as owner and operator; judges nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from multiprocessing import get_context
from uuid import UUID

import nats
import nats.errors
import psycopg
from gouji.engine.v1 import facts_pb2
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import APIError

from engine.runtime import subjects
from engine.runtime.outbox_relay import POSITION
from engine.runtime.streams import STREAMS, stream_of
from services.ranking.fold import Standing
from services.ranking.rating import Skill
from tests.chaos.harness.clients import Book
from tests.chaos.harness.evidence import Board, Counted, Evidence, Fact, Kind, Mark, Seen, Truth
from tests.chaos.harness.truth import truth_of

FRESH_PROCESSES = 2
SETTLE_S = 0.5

_PAGE = 500
_SHARED_OUT_S = 30.0
_TABLES = "select table_id, version, closed from engine.stream"
_PENDING = "select table_id, position from engine.outbox"
_OUTBOXES = "select (select count(*) from ranking.outbox) + (select count(*) from matchmaking.outbox)"
_JOURNAL = "select source, position from ranking.result order by ordinal"
_RATINGS = "select player_id, mu, sigma, deals, matches from ranking.rating"


def open_tables(dsn: str) -> dict[UUID, int]:
    """The version of every table that is not closed."""
    with psycopg.connect(dsn) as connection:
        return {table_id: version for table_id, version, closed in connection.execute(_TABLES) if not closed}


async def truths(dsn: str, seen: Sequence[Seen]) -> dict[UUID, Truth]:
    """Every table, each told by a process that knows nothing but the log; with the views whose content was noted."""
    views: dict[UUID, set[tuple[str, int]]] = defaultdict(set)
    for page in seen:
        views[page.table_id].update((page.audience, mark.version) for mark in page.marks if _is_view(mark))
    with psycopg.connect(dsn) as connection:
        tables = [row[0] for row in connection.execute(_TABLES)]
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(FRESH_PROCESSES, mp_context=get_context("spawn")) as pool:
        told = await asyncio.gather(*(loop.run_in_executor(pool, truth_of, dsn, one, views[one]) for one in tables))
    return dict(zip(tables, told, strict=True))


def pending(dsn: str) -> dict[UUID, set[int]]:
    """The positions of each table's facts that are not published yet."""
    found: dict[UUID, set[int]] = defaultdict(set)
    with psycopg.connect(dsn) as connection:
        for table_id, position in connection.execute(_PENDING):
            found[table_id].add(position)
    return found


async def settle(dsn: str, bus_url: str, within_s: float, *, with_engines: bool) -> bool:
    """Wait until all outboxes are empty and all consumers have taken all, those of engines too; False if they do not."""
    ends_at = time.monotonic() + within_s
    async with _jetstream(bus_url) as jetstream:
        while not await _is_settled(dsn, jetstream, with_engines=with_engines):
            if time.monotonic() > ends_at:
                return False
            await asyncio.sleep(SETTLE_S)
    return True


async def facts(bus_url: str) -> dict[UUID, list[Fact]]:
    """The facts of every table in the order of the stream."""
    found: dict[UUID, list[Fact]] = defaultdict(list)
    for message in await _messages(bus_url, subjects.FACTS):
        fact = facts_pb2.Fact.FromString(message.data)
        found[UUID(message.subject.rsplit(".", 1)[1])].append(Fact(fact.position, fact.event_id, message.data))
    return found


async def evidence(dsn: str, bus_url: str, book: Book) -> Evidence:
    """All that is kept: the clients' records, the log of every table, the bus and the ratings."""
    seen = with_audiences(book.seen)
    return Evidence(
        truths=await truths(dsn, seen),
        said=book.said,
        seen=seen,
        bus=await facts(bus_url),
        board=await board(dsn, bus_url),
        pending=pending(dsn),
        turned_away=book.turned_away,
    )


async def board(dsn: str, bus_url: str) -> Board:
    """What ranking made of it."""
    with psycopg.connect(dsn) as connection:
        journal = [Counted(UUID(source.rsplit(".", 1)[1]), at) for source, at in connection.execute(_JOURNAL)]
        standings = {
            player: Standing(Skill(mu, sigma), deals, matches)
            for player, mu, sigma, deals, matches in connection.execute(_RATINGS)
        }
    told: dict[str, list[int]] = defaultdict(list)
    for message in await _messages(bus_url, subjects.RATINGS):
        told[message.subject.rsplit(".", 1)[1]].append(int((message.headers or {})[POSITION]))
    return Board(journal, standings, told)


def with_audiences(pages: Sequence[Seen]) -> list[Seen]:
    """Streams that ended before any view came get the audience of the client's other streams there."""
    known: Mapping[tuple[UUID, str], str] = {
        (page.table_id, page.player): page.audience for page in pages if page.audience
    }
    for page in pages:
        page.audience = page.audience or known.get((page.table_id, page.player), "")
    return [page for page in pages if page.marks]


def _is_view(mark: Mark) -> bool:
    return bool(mark.digest) and mark.kind is not Kind.EVENT


async def _is_settled(dsn: str, jetstream: JetStreamContext, *, with_engines: bool) -> bool:
    if with_engines and pending(dsn):
        return False
    with psycopg.connect(dsn) as connection:
        ((waiting,),) = connection.execute(_OUTBOXES).fetchall()
    taken = [stream for stream in STREAMS if with_engines or stream.pattern != subjects.MATCHES]
    consumers = [info for stream in taken for info in await jetstream.consumers_info(stream.name)]
    return not waiting and not any(info.num_pending or info.num_ack_pending for info in consumers)


async def _messages(bus_url: str, pattern: str) -> list[Msg]:
    """Everything in the stream, in its order; asked anew while servers that came back still share out who answers."""
    ends_at = time.monotonic() + _SHARED_OUT_S
    while True:
        try:
            return [message async for message in _read(bus_url, pattern)]
        except (APIError, nats.errors.TimeoutError):
            if time.monotonic() > ends_at:
                raise
            await asyncio.sleep(SETTLE_S)


async def _read(bus_url: str, pattern: str) -> AsyncIterator[Msg]:
    config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL, ack_policy=AckPolicy.NONE)
    async with _jetstream(bus_url) as jetstream:
        stream = stream_of(pattern).name
        left = (await jetstream.stream_info(stream)).state.messages
        pull = await jetstream.pull_subscribe(pattern, stream=stream, config=config)
        while left > 0:
            page = await pull.fetch(min(left, _PAGE), timeout=10)
            left -= len(page)
            for message in page:
                yield message


@asynccontextmanager
async def _jetstream(bus_url: str) -> AsyncIterator[JetStreamContext]:
    connection = await nats.connect(bus_url.split(","))
    try:
        yield connection.jetstream()
    finally:
        await connection.close()
