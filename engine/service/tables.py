"""The tables that this replica holds in memory.

Law: a table is held for one term of leadership and for as long as it is of use; which one goes first when there are too
many is decided here. What happens at a table is `table.py`'s.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from uuid import UUID

import structlog

from engine.runtime.faults import Fault, NotFound
from engine.service.faults import NotLeading, Quarantined
from engine.service.orders import Look, Order, Verdict
from engine.service.shards import Shards
from engine.service.table import House, Table
from engine.store.port import Deadline, shard_of

_log = structlog.get_logger(__name__)


class Tables:
    """Tables by id, the one used longest ago first; at most `limit` that are idle."""

    def __init__(self, house: House, shards: Shards, limit: int = 10_000) -> None:
        self._house = house
        self._shards = shards
        self._limit = limit
        self._live: OrderedDict[UUID, Table] = OrderedDict()

    def __len__(self) -> int:
        return len(self._live)

    def quarantined(self) -> list[tuple[UUID, str]]:
        """The tables that a fault has set aside, and the fault."""
        return [(table.id, table.fault) for table in self._live.values() if table.fault]

    async def release(self, table_id: UUID) -> None:
        """Take a table up again that was set aside. Raises a `Fault` when there is none, or it breaks again."""
        table = self._live.get(table_id)
        if table is None or not table.fault:
            raise NotFound
        try:
            await table.release()
        finally:
            self._tidy(table)

    async def judge(self, table_id: UUID, order: Order) -> Verdict:
        """Answer a command; raises a `Fault` when it was not judged."""
        table = self._at(table_id)
        try:
            verdict = await table.judge(order)
        except Fault as fault:
            self._house.measures.commands.labels(fault.reason.lower()).inc()
            raise
        else:
            self._house.measures.commands.labels(type(verdict).__name__.lower()).inc()
            return verdict
        finally:
            self._tidy(table)

    async def look(self, table_id: UUID) -> Look:
        """Where a table stands; raises a `Fault` when it cannot be told."""
        table = self._at(table_id)
        try:
            return await table.look()
        finally:
            self._tidy(table)

    async def pass_deadline(self, table_id: UUID, deadline: Deadline) -> None:
        """Do what a deadline is there for; one that fails stays in the store and is found again."""
        try:
            table = self._at(table_id)
            await table.pass_deadline(deadline)
            self._tidy(table)
        except (NotLeading, Quarantined):
            self._house.measures.deadlines.labels("dropped").inc()
        except Fault as fault:
            self._house.measures.deadlines.labels("failed").inc()
            _log.warning("deadline not passed", table=str(table_id), reason=fault.reason)

    def gained(self, shards: Collection[int]) -> None:
        """Nothing: tables are taken up when they are needed."""

    def lost(self, shards: Collection[int]) -> None:
        """Hold no table of these shards any more; what is under way there finds out by itself."""
        for table_id in [table for table in self._live if shard_of(table) in shards]:
            del self._live[table_id]

    def _at(self, table_id: UUID) -> Table:
        term = self._shards.term(shard_of(table_id))
        if term is None:
            raise NotLeading
        table = self._live.get(table_id)
        if table is None or table.term is not term:
            table = self._live[table_id] = Table(table_id, term, self._house)
        self._live.move_to_end(table_id)
        return table

    def _tidy(self, table: Table) -> None:
        """Keep neither a table that is of no use any more nor too many."""
        if table.is_spent and table.is_idle and self._live.get(table.id) is table:
            del self._live[table.id]
        if len(self._live) > self._limit:
            oldest = next((one for one in self._live.values() if one.is_idle and not one.fault), None)
            if oldest is not None:
                del self._live[oldest.id]
