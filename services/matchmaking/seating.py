"""Which proposed matches have become tables, and who sits at a ranked table that is not finished and so may not queue.

Law: follows the engine's facts, in the transaction of the gate. The match's row decides, under its lock, what became of
it: opened, when the engine's fact came first, and only then are its players told of the table; or withdrawn, when the
time was up first, and its players wait again with their age. A table that opens all the same was shown to nobody: it
seats nobody, and the engine is told to close it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from engine.runtime import outbox_relay
from engine.runtime.outbox_relay import OutgoingFact
from engine.runtime.postgres import reaching

_BECAME: Final = "select state from match where table_id = %s for update"
_OPENED: Final = "update match set state = 'opened' where table_id = %s"
_MATCHED: Final = """
update ticket set state = 'matched', ended_at = clock_timestamp() where table_id = %s and state = 'proposed'
"""
_LEFT: Final = "delete from seated where table_id = %s and player_id <> all(%s)"
_SIT: Final = "insert into seated (table_id, player_id) select %s, unnest(%s::text[]) on conflict do nothing"
_WITHDRAW: Final = """
update ticket set state = 'cancelled', ended_at = clock_timestamp(), complaint = 'seated'
where player_id = any(%s) and state = 'waiting'
"""
_FREE: Final = "delete from seated where table_id = %s"
_GIVE_UP: Final = """
update match set state = 'withdrawn' where table_id in (
    select table_id from match where state = 'proposed' and proposed_at < clock_timestamp() - %s * interval '1 second'
    order by proposed_at limit %s for update skip locked
)
returning table_id
"""
_WAIT_AGAIN: Final = """
update ticket set state = 'waiting', table_id = null, seat = null where table_id = any(%s) and state = 'proposed'
"""
_FORGET: Final = """
delete from match where table_id in (
    select table_id from match where state <> 'proposed' and proposed_at < clock_timestamp() - %s * interval '1 second'
    limit %s
)
"""

_SWEPT_AT_ONCE: Final = 500
_KEPT_S: Final = 30 * 86_400.0
"""How long it is remembered what became of a match: as long as the bus keeps a fact of its table."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A ranked table is open, and these players sit there."""

    table_id: UUID
    players: Sequence[str]


@dataclass(frozen=True, slots=True)
class Occupied:
    """These players sit at this ranked table now, and nobody else."""

    table_id: UUID
    players: Sequence[str]


@dataclass(frozen=True, slots=True)
class Freed:
    """Nobody sits at this table any more."""

    table_id: UUID


@dataclass(frozen=True, slots=True)
class Irrelevant:
    """The fact is of no interest here; only its position counts."""


SeatingFact = Opened | Occupied | Freed | Irrelevant

Withdrawal = Callable[[UUID], OutgoingFact]
"""Writes the fact that tells the engine that a match's table is not wanted any more."""


@dataclass(frozen=True, slots=True)
class Follower:
    """Makes the effects of facts. `matched` counts tickets that found their table."""

    withdrawal: Withdrawal
    matched: Callable[[int], None]

    async def follow(self, connection: AsyncConnection[TupleRow], fact: SeatingFact) -> None:
        """Make a fact's effect, in the caller's transaction."""
        match fact:
            case Opened(table_id, players):
                await self._open(connection, table_id, players)
            case Occupied(table_id, players):
                if await _became(connection, table_id) != "withdrawn":
                    await _occupy(connection, table_id, players)
            case Freed(table_id):
                await connection.execute(_FREE, (table_id,))
            case Irrelevant():
                return

    async def _open(self, connection: AsyncConnection[TupleRow], table_id: UUID, players: Sequence[str]) -> None:
        if await _became(connection, table_id) == "withdrawn":
            await outbox_relay.put(connection, [self.withdrawal(table_id)])
            return
        await connection.execute(_OPENED, (table_id,))
        cursor = await connection.execute(_MATCHED, (table_id,))
        self.matched(cursor.rowcount)
        await _occupy(connection, table_id, players)


async def _became(connection: AsyncConnection[TupleRow], table_id: UUID) -> str:
    """What became of a match, which nobody changes until the transaction ends; empty for a table of somebody else."""
    cursor = await connection.execute(_BECAME, (table_id,))
    (state,) = await cursor.fetchone() or ("",)
    return str(state)


async def _occupy(connection: AsyncConnection[TupleRow], table_id: UUID, players: Sequence[str]) -> None:
    """Note who sits there. Who sits down elsewhere has his ticket withdrawn."""
    await connection.execute(_LEFT, (table_id, list(players)))
    await connection.execute(_SIT, (table_id, list(players)))
    await connection.execute(_WITHDRAW, (list(players),))


class Seating:
    """The keeper of the matches."""

    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool

    async def give_up_unopened(self, after_s: float) -> Sequence[UUID]:
        """Let the players of matches wait again whose table did not open within so many seconds; names the tables."""
        with reaching():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(_GIVE_UP, (after_s, _SWEPT_AT_ONCE))
                table_ids = [table_id for (table_id,) in await cursor.fetchall()]
                await connection.execute(_WAIT_AGAIN, (table_ids,))
                return table_ids

    async def forget(self) -> int:
        """Delete matches that no fact can concern any more; returns how many."""
        with reaching():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(_FORGET, (_KEPT_S, _SWEPT_AT_ONCE))
                return cursor.rowcount
