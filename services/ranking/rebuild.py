"""Making the ratings anew: from the journal of counted results, or from the stream of facts.

Law: a rating is a fold and never the truth. `rebuild` folds the journal in its own order and mends what differs;
`start_over` forgets everything, so that the service counts the whole stream again, under a new consumer name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from engine.runtime.bus import FactMessage
from engine.runtime.intake import Arrival
from engine.runtime.postgres import reaching
from services.ranking.fold import Standing, changed
from services.ranking.journal import Entry, add_newcomers, standing, write

# Whoever enters a result writes ratings first, and so waits until the rebuild is done; readers do not.
_STOP_ENTRIES: Final = "lock table rating in share row exclusive mode"
_NO_TIMEOUT: Final = "set local statement_timeout to 0"
_RESULTS: Final = "select ordinal, source, payload from result where ordinal > %s order by ordinal limit %s"
_RATINGS: Final = "select player_id, mu, sigma, deals, matches, shown from rating"
_UNFOUNDED: Final = "delete from rating where player_id <> all(%s)"
_FORGET: Final = "truncate rating, result, inbox, parked, outbox restart identity"
_NEW_GENERATION: Final = "update projection set generation = gen_random_uuid()"
_GENERATION: Final = "select generation::text from projection"

_PAGE: Final = 5000

ReadEntry = Callable[[FactMessage], Arrival[Entry]]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How many results were folded, how many players they gave, and how many rows had to be mended."""

    results: int
    players: int
    mended: int


async def rebuild(pool: AsyncConnectionPool, read: ReadEntry) -> Rebuilt:
    """Fold the journal and make the ratings what it says, in one transaction. Raises `Unavailable`."""
    with reaching():
        async with pool.connection() as connection:
            await connection.execute(_NO_TIMEOUT)
            await connection.execute(_STOP_ENTRIES)
            results, folded = await _fold(connection, read)
            mended = await _mend(connection, folded)
    return Rebuilt(results, len(folded), mended)


async def start_over(pool: AsyncConnectionPool) -> None:
    """Forget all ratings, as the schema's owner; the service, when it starts next, counts the stream from its beginning."""
    with reaching():
        async with pool.connection() as connection:
            await connection.execute(_FORGET)
            await connection.execute(_NEW_GENERATION)


async def consumer_name(pool: AsyncConnectionPool) -> str:
    """Name the durable consumer that fills this very database."""
    with reaching():
        async with pool.connection() as connection:
            cursor = await connection.execute(_GENERATION)
            (generation,) = await cursor.fetchone() or ("",)
    return f"ranking-{generation}"


async def _fold(connection: AsyncConnection[TupleRow], read: ReadEntry) -> tuple[int, dict[str, Standing]]:
    standings: dict[str, Standing] = {}
    count, last = 0, 0
    while rows := await (await connection.execute(_RESULTS, (last, _PAGE))).fetchall():
        for ordinal, source, payload in rows:
            result = read(FactMessage(source, payload, {}, ordinal, 1)).fact.result
            if result is not None:
                standings.update(changed(standings, result))
            last = ordinal
        count += len(rows)
    return count, standings


async def _mend(connection: AsyncConnection[TupleRow], folded: Mapping[str, Standing]) -> int:
    cursor = await connection.execute(_RATINGS)
    stored = {row[0]: (standing(row[:5]), row[5]) for row in await cursor.fetchall()}
    wrong = {player_id: right for player_id, right in folded.items() if stored.get(player_id) != (right, right.shown)}
    unfounded = stored.keys() - folded.keys()
    await connection.execute(_UNFOUNDED, (list(folded),))
    await add_newcomers(connection, wrong)
    await write(connection, wrong)
    return len(wrong) + len(unfounded)
