"""An append whose outcome is always known in the end.

Law: when the connection breaks in the middle, the command id is looked up and the very same events are appended again
under the same id, until the store has told what became of them or this replica leads no more. Never called failed before
the version has moved past it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from engine.service.faults import NotLeading
from engine.service.measures import Measures
from engine.store.port import Append, Appended, EventStore, OutcomeUnknown, StoreUnavailable, WrongVersion

_log = structlog.get_logger(__name__)

_PAUSE_S = 0.2


class Ledger:
    """The store, for tables that append."""

    def __init__(self, store: EventStore, measures: Measures, pause_s: float = _PAUSE_S) -> None:
        self._store = store
        self._measures = measures
        self._pause_s = pause_s

    async def append(self, append: Append, leads: Callable[[], bool]) -> Appended:
        """Store the events. Raises `WrongVersion`, `NotTheLeader`, `StoreUnavailable` when they surely are not stored.

        Raises `NotLeading` when the outcome is unknown and whoever leads the table next will settle it.
        """
        with self._measures.append_seconds.time():
            try:
                return await self._store.append(append)
            except OutcomeUnknown:
                _log.warning("outcome unknown", table=str(append.table_id), command=str(append.command_id))
            return await self._settle(append, leads)

    async def _settle(self, append: Append, leads: Callable[[], bool]) -> Appended:
        while leads():
            try:
                return await self._look_up(append) or await self._store.append(append)
            except WrongVersion:
                # The version has moved past it: by this very command, or else it can never be stored any more.
                if found := await self._look_up(append):
                    return found
                raise
            except (OutcomeUnknown, StoreUnavailable):
                await asyncio.sleep(self._pause_s)
        raise NotLeading

    async def _look_up(self, append: Append) -> Appended | None:
        return await self._store.find_command(append.table_id, append.command_id)
