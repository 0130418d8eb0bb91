"""From six tickets to an open table: matchmaking, a real bus and the engine, which comes and goes."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.engine.v1.facts_pb2 import Fact
from gouji.matchmaking.v1 import matchmaking_pb2 as pb
from gouji.matchmaking.v1 import matchmaking_pb2_grpc as rpc

from engine.runtime import subjects
from engine.runtime.bus import FactMessage
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.store.memory import MemoryEventStore
from services.matchmaking.main import compose
from tests.fixtures.processes import bearer, dialled, running
from tests.fixtures.schemas import as_service, migrated
from tests.services.matchmaking_players import found, queue, settings_for
from tests.support.engine_bench import Callers, accepted, eventually, start

if TYPE_CHECKING:
    Stub = rpc.MatchmakingServiceAsyncStub

SIX = [f"p{number}" for number in range(6)]
WAITING, PROPOSED, MATCHED = pb.TICKET_STATE_WAITING, pb.TICKET_STATE_PROPOSED, pb.TICKET_STATE_MATCHED


class Evening:
    """Six players at matchmaking, what each of them is shown, and who sits at which tables as the engine tells it."""

    def __init__(self, stub: Stub, bus: NatsBus, nats_url: str) -> None:
        self.stub = stub
        self.bus = bus
        self.shown: defaultdict[str, list[pb.Ticket]] = defaultdict(list)
        self.seats: dict[str, Sequence[str]] = {}
        self.opened: list[str] = []
        self._nats_url = nats_url

    @property
    def states(self) -> list[list[int]]:
        """The states that each player was shown."""
        return [[ticket.state for ticket in self.shown[player]] for player in SIX]

    async def watch(self, player: str) -> pb.Ticket:
        """Queue a player and keep what he is shown until the end."""
        ticket = await queue(self.stub, player)
        call = self.stub.WatchTicket(pb.WatchTicketRequest(ticket_id=ticket.ticket_id), metadata=bearer(player))
        async for response in call:
            self.shown[player].append(response.ticket)
        return self.shown[player][-1]

    async def all_are(self, state: int) -> None:
        """Wait until every player is shown this state."""

        async def are() -> bool:
            return all(states[-1:] == [state] for states in self.states)

        await eventually(are)

    async def all_wait_again(self) -> None:
        """Wait until every player was shown that his proposal came to nothing."""

        async def do() -> bool:
            return all((PROPOSED, WAITING) in pairwise(states) for states in self.states)

        await eventually(do, within=20)

    async def hear(self, message: FactMessage) -> None:
        """Follow the tables."""
        fact = Fact.FromString(message.payload)
        match fact.WhichOneof("fact"):
            case "table_opened":
                self.opened.append(fact.table_id)
                self.seats[fact.table_id] = fact.table_opened.players
            case "table_closed":
                del self.seats[fact.table_id]

    async def everybody_sits_once(self, table_id: str) -> None:
        """Wait until the engine has no open table but this one, where all six sit."""

        async def sit() -> bool:
            return list(self.seats) == [table_id]

        await eventually(sit)
        assert Counter(self.seats[table_id]) == Counter(SIX)

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[None]:
        """Run an engine."""
        replica = await start(MemoryEventStore(), await NatsBus.connect(NatsOptions((self._nats_url,))))
        try:
            yield
        finally:
            await replica.stop()
            await replica.bus.close()


@asynccontextmanager
async def evening(dsn: str, nats_url: str, unopened_s: float) -> AsyncIterator[Evening]:
    async with AsyncExitStack() as stack:
        settings = settings_for(dsn, nats_url, matchmaking_unopened=unopened_s)
        address = await stack.enter_async_context(running(compose, settings))
        channel = await stack.enter_async_context(dialled(address))
        bus = await NatsBus.connect(NatsOptions((nats_url,)))
        stack.push_async_callback(bus.close)
        spent = Evening(rpc.MatchmakingServiceStub(channel), bus, nats_url)
        await bus.consume(subjects.FACTS, "evening", spent.hear)
        yield spent


@pytest.fixture
async def dsn(empty_database: str) -> str:
    """The database as the service's own role sees it."""
    migrated(empty_database, "matchmaking")
    return as_service(empty_database, "matchmaking")


async def test_a_match_is_proposed_and_then_a_table_that_can_be_joined_at_once(dsn: str, nats_url: str) -> None:
    async def watch_and_join(spent: Evening, player: str) -> pb.Ticket:
        ticket = await spent.watch(player)
        view = await Callers(spent.bus, UUID(ticket.table_id)).view(player)
        assert view.public.seats[ticket.seat].player_id == player
        return ticket

    async with evening(dsn, nats_url, 30) as spent:
        playing = asyncio.gather(*(watch_and_join(spent, player) for player in SIX))
        await spent.all_are(PROPOSED)
        assert {ticket.table_id for player in SIX for ticket in spent.shown[player]} == {""}
        async with spent.engine():
            tickets = await asyncio.wait_for(playing, 20)

    assert spent.states[0][0] == WAITING
    assert all(states in ([WAITING, PROPOSED, MATCHED], [PROPOSED, MATCHED]) for states in spent.states)
    assert len({ticket.table_id for ticket in tickets}) == 1
    assert sorted(ticket.seat for ticket in tickets) == list(range(6))


async def test_an_engine_that_is_down_for_long_costs_no_age_and_opens_no_lapsed_match(dsn: str, nats_url: str) -> None:
    async with evening(dsn, nats_url, 2) as spent:
        playing = asyncio.gather(*(spent.watch(player) for player in SIX))
        await spent.all_are(PROPOSED)
        await spent.all_wait_again()
        (lapsed, *_) = await found(spent.bus, 1)
        async with spent.engine():
            tickets = await asyncio.wait_for(playing, 20)
            await spent.everybody_sits_once(tickets[0].table_id)

    assert {ticket.state for ticket in tickets} == {MATCHED}
    assert all(len({ticket.created_at_ms for ticket in spent.shown[player]}) == 1 for player in SIX)
    assert {ticket.table_id for player in SIX for ticket in spent.shown[player]} == {"", tickets[0].table_id}
    assert lapsed.table_id not in spent.opened


async def test_a_table_that_an_engine_opens_too_late_is_closed_unseen(dsn: str, nats_url: str) -> None:
    async with evening(dsn, nats_url, 2) as spent:
        playing = asyncio.gather(*(spent.watch(player) for player in SIX))
        (first, *_) = await found(spent.bus, 1)
        await spent.all_wait_again()
        async with spent.engine():
            stalled = Callers(spent.bus, UUID(first.table_id))
            opening = engine.OpenTable(variant_key="shandong", deals=4, players=first.players, ranked=True)
            accepted(await stalled.send("service", open_table=opening))
            tickets = await asyncio.wait_for(playing, 20)
            await spent.everybody_sits_once(tickets[0].table_id)

    assert first.table_id in spent.opened
    assert first.table_id not in {ticket.table_id for player in SIX for ticket in spent.shown[player]}
