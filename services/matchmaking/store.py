"""Tickets in Postgres.

Law: all SQL about single tickets is here; the database's clock decides about time, and its row locks about who was first.
A ticket leaves `waiting` by one update of its locked row, so of a match, a cancellation and an expiry exactly one happens.
A table is told only once it is open; what a ticket is proposed for stays here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection, sql
from psycopg.errors import UniqueViolation
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from engine.runtime.postgres import reaching
from engine.runtime.uuid7 import uuid7
from services.matchmaking.matching import Queue
from services.matchmaking.tickets import AlreadyQueued, AlreadySeated, State, Ticket, TicketNotFound

_TICKET: Final = sql.SQL("""
ticket_id, player_id, ticket.state, variant_key, deals, (extract(epoch from created_at) * 1000)::bigint,
case when ticket.state = 'matched' then table_id end, case when ticket.state = 'matched' then seat end
""")

_BY_COMMAND: Final = sql.SQL("select {ticket} from ticket where player_id = %s and command_id = %s").format(
    ticket=_TICKET
)
_ACTIVE: Final = "select ticket_id from ticket where player_id = %s and state in ('waiting', 'proposed')"
_SEATED: Final = "select table_id from seated where player_id = %s limit 1"
_QUEUE: Final = "insert into queue (variant_key, deals) values (%s, %s) on conflict do nothing"
_INSERT: Final = sql.SQL("""
insert into ticket (ticket_id, player_id, command_id, variant_key, deals) values (%s, %s, %s, %s, %s)
returning {ticket}
""").format(ticket=_TICKET)
_BY_ID: Final = sql.SQL("select {ticket} from ticket where ticket_id = %s and player_id = %s").format(ticket=_TICKET)
_LOCK: Final = sql.SQL("{by_id} for update").format(by_id=_BY_ID)
_CANCEL: Final = sql.SQL("""
update ticket set state = 'cancelled', ended_at = clock_timestamp() where ticket_id = %s returning {ticket}
""").format(ticket=_TICKET)
_CHANGED: Final = sql.SQL("""
select {ticket} from unnest(%s::uuid[], %s::text[]) as known (ticket_id, state) join ticket using (ticket_id)
where ticket.state <> known.state
""").format(ticket=_TICKET)
# Skips tickets that are just being claimed. Proposed ones may have to wait again, and their players be there.
_BEAT: Final = """
update ticket set seen_at = clock_timestamp() where ticket_id in (
    select ticket_id from ticket where ticket_id = any(%s) and state in ('waiting', 'proposed') for update skip locked
)
"""
_EXPIRE: Final = """
update ticket set state = 'expired', ended_at = clock_timestamp() where ticket_id in (
    select ticket_id from ticket where state = 'waiting' and seen_at < clock_timestamp() - %s * interval '1 second'
    order by seen_at limit %s for update skip locked
)
returning ticket_id
"""
_FORGET: Final = """
delete from ticket where ticket_id in (
    select ticket_id from ticket where ended_at < clock_timestamp() - %s * interval '1 second' limit %s
)
"""

_SWEPT_AT_ONCE: Final = 500


class Tickets:
    """The tickets of all players. Every method raises `Unavailable` when the database cannot be reached."""

    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool

    async def create(self, player_id: str, command_id: UUID, queue: Queue) -> Ticket:
        """Queue a player; the same command gives the same ticket. Raises `AlreadyQueued`, `AlreadySeated`."""
        with reaching():
            try:
                async with self._pool.connection() as connection:
                    return await _create(connection, player_id, command_id, queue)
            except UniqueViolation as other:
                return await self._first_answer(player_id, command_id, other)

    async def find(self, ticket_id: UUID, player_id: str) -> Ticket:
        """Look at a player's ticket. Raises `TicketNotFound`, also when it is somebody else's."""
        with reaching():
            async with self._pool.connection() as connection:
                return await _find(connection, ticket_id, player_id)

    async def cancel(self, ticket_id: UUID, player_id: str) -> Ticket:
        """Take a ticket back if it waits; the answer says where it stands then. Raises `TicketNotFound`."""
        with reaching():
            async with self._pool.connection() as connection:
                ticket = await _find(connection, ticket_id, player_id, _LOCK)
                if ticket.state is not State.WAITING:
                    return ticket
                cursor = await connection.execute(_CANCEL, (ticket_id,))
                return _ticket(await cursor.fetchone() or ())

    async def changed(self, known: Mapping[UUID, str]) -> Sequence[Ticket]:
        """Give those of these tickets that are in another state than is known."""
        with reaching():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(_CHANGED, (list(known), list(known.values())))
                return [_ticket(row) for row in await cursor.fetchall()]

    async def beat(self, ticket_ids: Collection[UUID]) -> None:
        """Note a sign of life of these tickets."""
        with reaching():
            async with self._pool.connection() as connection:
                await connection.execute(_BEAT, (list(ticket_ids),))

    async def expire(self, silent_s: float) -> int:
        """End tickets that gave no sign of life for so many seconds; returns how many."""
        with reaching():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(_EXPIRE, (silent_s, _SWEPT_AT_ONCE))
                return cursor.rowcount

    async def forget(self, kept_s: float) -> int:
        """Delete tickets that ended so many seconds ago; returns how many."""
        with reaching():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(_FORGET, (kept_s, _SWEPT_AT_ONCE))
                return cursor.rowcount

    async def _first_answer(self, player_id: str, command_id: UUID, other: UniqueViolation) -> Ticket:
        """Say who was first: this very command, sent twice at once, or another ticket of the player."""
        async with self._pool.connection() as connection:
            if first := await _by_command(connection, player_id, command_id):
                return first
            cursor = await connection.execute(_ACTIVE, (player_id,))
            row = await cursor.fetchone()
        raise AlreadyQueued(metadata={"ticket_id": str(row[0])} if row else {}) from other


async def _create(connection: AsyncConnection[TupleRow], player_id: str, command_id: UUID, queue: Queue) -> Ticket:
    if first := await _by_command(connection, player_id, command_id):
        return first
    cursor = await connection.execute(_SEATED, (player_id,))
    if row := await cursor.fetchone():
        raise AlreadySeated(metadata={"table_id": str(row[0])})
    await connection.execute(_QUEUE, queue)
    cursor = await connection.execute(_INSERT, (uuid7(), player_id, command_id, *queue))
    return _ticket(await cursor.fetchone() or ())


async def _by_command(connection: AsyncConnection[TupleRow], player_id: str, command_id: UUID) -> Ticket | None:
    cursor = await connection.execute(_BY_COMMAND, (player_id, command_id))
    row = await cursor.fetchone()
    return _ticket(row) if row else None


async def _find(
    connection: AsyncConnection[TupleRow], ticket_id: UUID, player_id: str, query: sql.Composed = _BY_ID
) -> Ticket:
    cursor = await connection.execute(query, (ticket_id, player_id))
    row = await cursor.fetchone()
    if row is None:
        raise TicketNotFound
    return _ticket(row)


def _ticket(row: TupleRow) -> Ticket:
    ticket_id, player_id, state, variant_key, deals, created_at_ms, table_id, seat = row
    return Ticket(ticket_id, player_id, State(state), Queue(variant_key, deals), created_at_ms, table_id, seat)
