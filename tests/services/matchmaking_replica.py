"""One replica of matchmaking's parts on a database, for tests that need no process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID, uuid4

from gouji.engine.v1.facts_pb2 import Fact
from gouji.matchmaking.v1 import facts_pb2
from prometheus_client import CollectorRegistry
from psycopg_pool import AsyncConnectionPool

from engine.runtime.intake import Intake, IntakeMeasures
from engine.runtime.outbox_relay import OutgoingFact
from engine.runtime.uuid7 import uuid7
from services.matchmaking import wire
from services.matchmaking.matching import Match, Queue
from services.matchmaking.measures import Measures
from services.matchmaking.office import Office
from services.matchmaking.policy import Policy
from services.matchmaking.rounds import Round, Rounds
from services.matchmaking.seating import Follower, Seating, SeatingFact
from services.matchmaking.store import Tickets
from services.matchmaking.sweeper import Keeper, Matcher
from services.matchmaking.tickets import Ticket
from services.matchmaking.watching import Watches
from tests.fixtures.facts import Table, delivered

SHANDONG = Queue("shandong", 4)
JINAN = Queue("jinan", 4)
POLICY = Policy(frozenset({"shandong", "jinan"}))


def announce(match: Match) -> OutgoingFact:
    return wire.announce(match, opening_s=0.2)


def table_of(found: facts_pb2.MatchFound) -> Table:
    """The table of a match, as the engine would open it."""
    return Table(UUID(found.table_id), found.players)


async def give_up(replica: Replica) -> None:
    """Let the time for opening pass."""
    await asyncio.sleep(0.4)
    await replica.keeper.sweep(0.2)


class Replica:
    """Everything but bus, port and loops; loops are run by the tests that want them."""

    def __init__(self, pool: AsyncConnectionPool, policy: Policy = POLICY) -> None:
        self.pool = pool
        self.registry = CollectorRegistry()
        self.measures = Measures(self.registry)
        self.tickets = Tickets(pool)
        self.watches = Watches(self.tickets, look_s=0.05, beat_s=0.05, most=20, most_each=2)
        self.rounds = Rounds(pool, policy, list, uuid7, announce)
        self.matcher = Matcher(self.rounds, self.measures, self._made, sweep_s=0.05)
        self.seating = Seating(pool)
        self.keeper = Keeper(
            self.tickets, self.seating, self.measures, self.watches.wake, silent_s=0.3, unopened_s=0.3, kept_s=0.3
        )
        self.office = Office(self.tickets, policy, self.matcher, self.watches, self.measures)
        self.intake: Intake[SeatingFact] = Intake(
            pool,
            wire.seating_from_fact,
            Follower(wire.withdraw, self.measures.matched).follow,
            IntakeMeasures(self.registry, "matchmaking"),
        )

    def _made(self, _: Round) -> None:
        self.watches.wake()

    async def queue(self, player_id: str, queue: Queue = SHANDONG) -> Ticket:
        return await self.office.create(player_id, uuid4(), queue.variant_key, queue.deals)

    async def queue_all(self, players: Sequence[str], queue: Queue = SHANDONG) -> list[Ticket]:
        return [await self.queue(player_id, queue) for player_id in players]

    async def look(self, ticket: Ticket) -> Ticket:
        return await self.tickets.find(ticket.ticket_id, ticket.player_id)

    async def tell(self, fact: Fact) -> None:
        """Let the engine tell a fact."""
        await self.intake.take(delivered(fact, sequence=fact.position))

    async def propose(self, players: Sequence[str]) -> tuple[list[Ticket], Table]:
        """Queue six players and propose them for a table, which is given with them by seat."""
        tickets = await self.queue_all(players)
        await self.matcher.sweep()
        return tickets, table_of((await self.announced())[-1])

    async def announced(self) -> list[facts_pb2.MatchFound]:
        async with self.pool.connection() as connection:
            cursor = await connection.execute("select payload from outbox order by created_at, position")
            return [facts_pb2.MatchFound.FromString(payload) for (payload,) in await cursor.fetchall()]

    async def execute(self, statement: str) -> None:
        async with self.pool.connection() as connection:
            await connection.execute(statement.encode())
