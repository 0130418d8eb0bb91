"""Reading ratings: one player's, and the board in pages.

Law: reads only. The board is ordered by shown rating, best first, then by player id bytewise; a page goes on after the
last entry of the page before, by its place in that order and not by its number, so that pages of a board that stands
still have neither gaps nor doubles, ties or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from engine.runtime.faults import NotFound
from engine.runtime.postgres import reaching
from services.ranking.fold import Standing
from services.ranking.journal import standing

DEFAULT_PAGE: Final = 50
MOST_A_PAGE: Final = 200

_FIND: Final = "select player_id, mu, sigma, deals, matches, shown from rating where player_id = %s"
_FIRST_PAGE: Final = """
select player_id, mu, sigma, deals, matches, shown from rating order by shown desc, player_id limit %s
"""
# Written out, not as a row comparison, because the two columns run in opposite directions.
_NEXT_PAGE: Final = """
select player_id, mu, sigma, deals, matches, shown from rating
where shown <= %(shown)s and (shown < %(shown)s or player_id > %(player_id)s)
order by shown desc, player_id limit %(limit)s
"""


class RatingNotFound(NotFound):
    """The player has no rating yet."""

    reason = "RATING_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class Place:
    """A place on the board: the rank is counted from 1 along the pages."""

    rank: int
    shown: int
    player_id: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A player as the board has him. `shown` is what the board is ordered by."""

    player_id: str
    standing: Standing
    shown: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """A player and his rank."""

    rank: int
    player: Listed

    @property
    def place(self) -> Place:
        """Where the next page begins, were this the last entry."""
        return Place(self.rank, self.player.shown, self.player.player_id)


@dataclass(frozen=True, slots=True)
class Page:
    """Entries best first; `last` is where the next page goes on, None at the end of the board."""

    entries: Sequence[Ranked]
    last: Place | None


class Board:
    """The ratings of all players. Every method raises `Unavailable` when the database cannot be reached."""

    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool

    async def find(self, player_id: str) -> Listed:
        """Look a player up. Raises `RatingNotFound`."""
        with reaching():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(_FIND, (player_id,))
                row = await cursor.fetchone()
        if row is None:
            raise RatingNotFound
        return _listed(row)

    async def page(self, size: int = 0, after: Place | None = None) -> Page:
        """Give the next entries; 0 means the default size, and more than `MOST_A_PAGE` are never given."""
        limit = min(size or DEFAULT_PAGE, MOST_A_PAGE)
        rows = await self._rows(after, limit + 1)
        start = after.rank + 1 if after else 1
        entries = [Ranked(rank, _listed(row)) for rank, row in enumerate(rows[:limit], start)]
        return Page(entries, entries[-1].place if len(rows) > limit else None)

    async def _rows(self, after: Place | None, limit: int) -> Sequence[TupleRow]:
        with reaching():
            async with self._pool.connection() as connection:
                if after is None:
                    cursor = await connection.execute(_FIRST_PAGE, (limit,))
                else:
                    key = {"shown": after.shown, "player_id": after.player_id, "limit": limit}
                    cursor = await connection.execute(_NEXT_PAGE, key)
                return await cursor.fetchall()


def _listed(row: TupleRow) -> Listed:
    return Listed(row[0], standing(row[:5]), row[5])
