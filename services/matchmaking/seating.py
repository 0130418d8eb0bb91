"""Who sits at a ranked table that is not finished, and so may not queue.

Law: follows the engine's facts, in the transaction of the gate. A match seats its players at once, unconfirmed; the
engine's fact confirms them. A match whose table never opens lets its players go after a while, and is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from engine.runtime.postgres import reaching

_LEFT: Final = "delete from seated where table_id = %s and player_id <> all(%s)"
_SIT: Final = """
insert into seated (table_id, player_id, confirmed) select %s, unnest(%s::text[]), true
on conflict (table_id, player_id) do update set confirmed = true
"""
_WITHDRAW: Final = """
update ticket set state = 'cancelled', ended_at = clock_timestamp(), complaint = 'seated'
where player_id = any(%s) and state = 'waiting'
"""
_FREE: Final = "delete from seated where table_id = %s"
_RELEASE: Final = """
delete from seated where not confirmed and since < clock_timestamp() - %s * interval '1 second' returning table_id
"""


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


SeatingFact = Occupied | Freed | Irrelevant


async def follow(connection: AsyncConnection[TupleRow], fact: SeatingFact) -> None:
    """Make a fact's effect. Who sits down elsewhere has his ticket withdrawn."""
    match fact:
        case Occupied(table_id, players):
            await connection.execute(_LEFT, (table_id, list(players)))
            await connection.execute(_SIT, (table_id, list(players)))
            await connection.execute(_WITHDRAW, (list(players),))
        case Freed(table_id):
            await connection.execute(_FREE, (table_id,))
        case Irrelevant():
            return


class Seating:
    """The keeper of the seats."""

    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool

    async def release_unconfirmed(self, after_s: float) -> set[UUID]:
        """Let players go whose table did not open within so many seconds; names the tables."""
        with reaching():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(_RELEASE, (after_s,))
                return {table_id for (table_id,) in await cursor.fetchall()}
