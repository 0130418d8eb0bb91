"""The tables that are not over, newest first, whoever leads them.

Law: reads the log; claims nothing, so that any replica may answer. Bounded in what it returns, folds at once and keeps.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import NamedTuple
from uuid import UUID

import structlog

from engine.match import Match
from engine.service.codec import UnknownEvent
from engine.service.standing import fold
from engine.store.port import EventStore, StreamHead

_log = structlog.get_logger(__name__)

MOST = 50
_AT_ONCE = 4
_KEPT = 512


class Listed(NamedTuple):
    """A table of the list."""

    table_id: UUID
    match: Match


class Listing:
    """Lists of open tables; remembers what it folded as long as the table has not moved on."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._folded: OrderedDict[UUID, tuple[int, Match]] = OrderedDict()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def newest(self, limit: int, before: UUID | None) -> list[Listed]:
        """At most `limit` open tables older than `before`. Raises `StoreUnavailable`."""
        heads = await self._store.list_streams(min(limit or MOST, MOST), before)
        listed = await asyncio.gather(*(self._listed(head) for head in heads))
        return [one for one in listed if one is not None]

    async def _listed(self, head: StreamHead) -> Listed | None:
        known = self._folded.get(head.table_id)
        if known is None or known[0] < head.version:
            async with self._slots:
                known = await self._fold(head.table_id)
        return Listed(head.table_id, known[1]) if known else None

    async def _fold(self, table_id: UUID) -> tuple[int, Match] | None:
        try:
            standing = await fold(self._store, table_id)
        except UnknownEvent as error:
            _log.warning("table not listed", table=str(table_id), event_type=str(error))
            return None
        self._folded[table_id] = standing.version, standing.match
        self._folded.move_to_end(table_id)
        if len(self._folded) > _KEPT:
            self._folded.popitem(last=False)
        return self._folded[table_id]
