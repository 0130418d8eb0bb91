"""What an audience missed, from any version on, however old.

Law: the log decides who is which audience: a player who holds a seat gets that seat's forms, everybody else the
public's. Newest steps come from memory, older ones are folded from the log; either way the forms are the same.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from engine import match
from engine.service.orders import Look
from engine.service.standing import Step, steps_after
from engine.service.tables import Tables
from engine.store.port import EventStore

MOST = 500


class Missed(NamedTuple):
    """Whose forms are meant, the steps after the version asked for, and where the table stands now."""

    audience: int | None
    steps: tuple[Step, ...]
    look: Look

    @property
    def is_complete(self) -> bool:
        """Whether these are all the steps there are."""
        now = self.look.standing.version
        return not self.steps or self.steps[-1].standing.version >= now


class History:
    """The history of the tables that this replica leads."""

    def __init__(self, store: EventStore, tables: Tables) -> None:
        self._store = store
        self._tables = tables

    async def missed(
        self, table_id: UUID, player: str, after_version: int, limit: int, as_seat: int | None = None
    ) -> Missed:
        """What this player missed after a version, at most `limit` steps; `as_seat` for an operator's look at a seat.

        Raises a `Fault`, `StoreUnavailable` or `UnknownEvent` when it cannot be told.
        """
        look = await self._tables.look(table_id)
        audience = match.seat_of(look.standing.match, player) if as_seat is None else as_seat
        limit = min(limit or MOST, MOST)
        return Missed(audience, await self._steps(table_id, look, after_version, limit), look)

    async def _steps(self, table_id: UUID, look: Look, after: int, limit: int) -> tuple[Step, ...]:
        if after >= look.standing.version:
            return ()
        if look.recent and look.recent[0].standing.version <= after + 1:
            newer = (step for step in look.recent if step.standing.version > after)
            return tuple(newer)[:limit]
        found = await steps_after(self._store, table_id, after, limit)
        return tuple(step for step in found if step.standing.version <= look.standing.version)
