"""Rounds: the oldest waiting tickets of a queue become tables, in one transaction.

Law: one replica at a time plays a round of a queue (the queue's row is locked; others skip it), so a round sees every
ticket that nobody is just cancelling. Tickets, their seats, the match and the fact for the engine are written together
or not at all: a crash leaves them waiting with their age, or proposed with the fact in the outbox.
Tickets that may not be matched are set aside first, so that none of them can fail a round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from engine.runtime import outbox_relay
from engine.runtime.outbox_relay import OutgoingFact
from engine.runtime.postgres import reaching
from services.matchmaking.matching import SEATS, Draw, Match, NewTableId, Queue, Waiting, matches
from services.matchmaking.policy import Policy
from services.matchmaking.tickets import State

_QUEUES: Final = "select variant_key, deals, count(*) from ticket where state = 'waiting' group by variant_key, deals"
_LOCK: Final = "select from queue where variant_key = %s and deals = %s for update skip locked"
_OLDEST: Final = """
select ticket_id, player_id, (extract(epoch from created_at) * 1000)::bigint from ticket
where state = 'waiting' and variant_key = %s and deals = %s
order by created_at, ticket_id limit %s for update skip locked
"""
_SEATED: Final = "select distinct player_id from seated where player_id = any(%s)"
_SET_ASIDE: Final = """
update ticket set state = %s, ended_at = clock_timestamp(), complaint = %s where ticket_id = any(%s)
"""
_CLAIM: Final = """
update ticket set state = 'proposed', table_id = %s, seat = array_position(%s, ticket_id) - 1
where ticket_id = any(%s) and state = 'waiting'
"""
_PROPOSE: Final = "insert into match (table_id) values (%s)"

_MATCHES_A_ROUND: Final = 10

Announce = Callable[[Match], OutgoingFact]
"""Writes the fact that tells the engine of a match."""


class LostClaim(Exception):
    """A locked ticket was not waiting: this cannot be, the round is undone."""


@dataclass(frozen=True, slots=True)
class Round:
    """What a round did. Withdrawn tickets are of players who sit elsewhere; poisoned ones can never be matched."""

    matches: Sequence[Match] = ()
    withdrawn: Sequence[Waiting] = ()
    poisoned: Sequence[Waiting] = ()

    @property
    def is_idle(self) -> bool:
        """Whether another round would find nothing new."""
        return not (self.matches or self.withdrawn or self.poisoned)


class Rounds:
    """Plays rounds on the pool's schema."""

    def __init__(
        self, pool: AsyncConnectionPool, policy: Policy, draw: Draw, new_table_id: NewTableId, announce: Announce
    ) -> None:
        self._pool = pool
        self._policy = policy
        self._draw = draw
        self._new_table_id = new_table_id
        self._announce = announce

    async def ready(self) -> Sequence[Queue]:
        """Name the queues where a round has something to do."""
        with reaching():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(_QUEUES)
                counts = [(Queue(key, deals), count) for key, deals, count in await cursor.fetchall()]
        return [queue for queue, count in counts if count >= SEATS or self._policy.complaint(queue)]

    async def play(self, queue: Queue) -> Round:
        """Match the oldest tickets of a queue; nothing if another replica is at it."""
        with reaching():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(_LOCK, queue)
                if await cursor.fetchone() is None:
                    return Round()
                return await self._locked(connection, queue)

    async def _locked(self, connection: AsyncConnection[TupleRow], queue: Queue) -> Round:
        tickets = await _oldest(connection, queue)
        if complaint := self._policy.complaint(queue):
            await _end(connection, tickets, State.EXPIRED, complaint)
            return Round(poisoned=tickets)
        seated = await _seated(connection, tickets)
        withdrawn = [ticket for ticket in tickets if ticket.player_id in seated]
        await _end(connection, withdrawn, State.CANCELLED, "seated")
        fit = [ticket for ticket in tickets if ticket.player_id not in seated]
        return Round(await self._match(connection, fit), withdrawn)

    async def _match(self, connection: AsyncConnection[TupleRow], tickets: Sequence[Waiting]) -> Sequence[Match]:
        made = matches(tickets, self._draw, self._new_table_id)
        for match in made:
            await _claim(connection, match)
        await outbox_relay.put(connection, [self._announce(match) for match in made])
        return made


async def _oldest(connection: AsyncConnection[TupleRow], queue: Queue) -> Sequence[Waiting]:
    cursor = await connection.execute(_OLDEST, (*queue, SEATS * _MATCHES_A_ROUND))
    return [Waiting(ticket_id, player_id, queue, at_ms) for ticket_id, player_id, at_ms in await cursor.fetchall()]


async def _seated(connection: AsyncConnection[TupleRow], tickets: Sequence[Waiting]) -> set[str]:
    cursor = await connection.execute(_SEATED, ([ticket.player_id for ticket in tickets],))
    return {player_id for (player_id,) in await cursor.fetchall()}


async def _end(connection: AsyncConnection[TupleRow], tickets: Sequence[Waiting], state: State, complaint: str) -> None:
    await connection.execute(_SET_ASIDE, (state, complaint, [ticket.ticket_id for ticket in tickets]))


async def _claim(connection: AsyncConnection[TupleRow], match: Match) -> None:
    ticket_ids = [ticket.ticket_id for ticket in match.tickets]
    cursor = await connection.execute(_CLAIM, (match.table_id, ticket_ids, ticket_ids))
    if cursor.rowcount != SEATS:
        raise LostClaim(str(match.table_id))
    await connection.execute(_PROPOSE, (match.table_id,))
