"""Results taking effect: the rating rows, the journal of what was counted, and the facts for others, in one transaction.

Law: all writing of ratings is here and in `rebuild.py`. A result locks the rows of its players, in the order of their
ids, before it gets its number in the journal; so results that share a player are numbered in the order in which they
took effect, and folding the journal gives the very same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from engine.runtime import outbox_relay
from engine.runtime.outbox_relay import OutgoingFact
from services.ranking.fold import DealResult, Result, Standing, changed
from services.ranking.rating import Skill

_NEWCOMERS: Final = """
insert into rating (player_id, mu, sigma, shown, deals, matches)
select player_id, %s, %s, %s, 0, 0 from unnest(%s::text[]) as player_id order by player_id collate "C"
on conflict do nothing
"""
_LOCK: Final = """
select player_id, mu, sigma, deals, matches from rating where player_id = any(%s) order by player_id for update
"""
_NUMBER: Final = "insert into result (source, position, payload) values (%s, %s, %s)"
_UPDATE: Final = "update rating set mu = %s, sigma = %s, shown = %s, deals = %s, matches = %s where player_id = %s"


@dataclass(frozen=True, slots=True)
class Entry:
    """A fact as it came, and the result it tells of; None if it tells of nothing that is rated."""

    source: str
    position: int
    payload: bytes
    cause: str
    result: Result | None


@dataclass(frozen=True, slots=True)
class Change:
    """A player's standing after a rated deal; `cause` is the id of the fact that changed it."""

    player_id: str
    standing: Standing
    cause: str


Announce = Callable[[Change], OutgoingFact]


class Journal:
    """Makes results take effect. `announce` writes the fact that tells of a change."""

    def __init__(self, announce: Announce) -> None:
        self._announce = announce

    async def enter(self, connection: AsyncConnection[TupleRow], entry: Entry) -> None:
        """Make an entry's effect inside the caller's transaction."""
        if entry.result is None:
            return
        before = await _locked(connection, entry.result.players)
        await connection.execute(_NUMBER, (entry.source, entry.position, entry.payload))
        after = changed(before, entry.result)
        await write(connection, after)
        if isinstance(entry.result, DealResult):
            await self._tell(connection, after, entry.cause)

    async def _tell(self, connection: AsyncConnection[TupleRow], after: Mapping[str, Standing], cause: str) -> None:
        changes = (Change(player_id, standing, cause) for player_id, standing in after.items())
        await outbox_relay.put(connection, [self._announce(change) for change in changes])


async def write(connection: AsyncConnection[TupleRow], standings: Mapping[str, Standing]) -> None:
    """Write standings into rows that are there."""
    rows = [
        (standing.skill.mu, standing.skill.sigma, standing.shown, standing.deals, standing.matches, player_id)
        for player_id, standing in sorted(standings.items())
    ]
    async with connection.cursor() as cursor:
        await cursor.executemany(_UPDATE, rows)


async def add_newcomers(connection: AsyncConnection[TupleRow], players: Collection[str]) -> None:
    """Make rows for those who have none."""
    new = Standing()
    await connection.execute(_NEWCOMERS, (new.skill.mu, new.skill.sigma, new.shown, list(players)))


async def _locked(connection: AsyncConnection[TupleRow], players: Collection[str]) -> dict[str, Standing]:
    await add_newcomers(connection, players)
    cursor = await connection.execute(_LOCK, (list(players),))
    return {row[0]: standing(row) for row in await cursor.fetchall()}


def standing(row: TupleRow) -> Standing:
    """Read a row of player_id, mu, sigma, deals, matches."""
    _, mu, sigma, deals, matches = row
    return Standing(Skill(mu, sigma), deals, matches)
