"""A consumer's positions held against how far its sources are on the bus: what the server's own lag does not see.

Law: compares and counts, changes nothing. For the server a fact is taken once it was acknowledged; a consumer whose
database came back from an older copy, or that passed one over, lacks it all the same with a lag of zero. What is on its
way just now is not meant: a source counts when it stands where it stood at the look before. Knows no fact; reads the
`INBOX` (gate.py) of the schema that is the search path of the pool.
"""

from __future__ import annotations

import asyncio

import psycopg
import structlog
from prometheus_client import CollectorRegistry, Gauge
from psycopg_pool import AsyncConnectionPool

from engine.runtime.bus import Bus, BusUnavailable

_log = structlog.get_logger(__name__)

EVERY_S = 60.0
"""From one look to the next."""

_BEHIND = """
select heads.source, coalesce(inbox.last, 0)
from unnest(%s::text[], %s::bigint[]) as heads (source, head)
left join inbox on inbox.source = heads.source
where heads.head > coalesce(inbox.last, 0)
"""


class Heads:
    """The looks of one consumer; `service` is part of the metric's name."""

    def __init__(
        self, pool: AsyncConnectionPool, bus: Bus, pattern: str, registry: CollectorRegistry, service: str
    ) -> None:
        self._pool = pool
        self._bus = bus
        self._pattern = pattern
        self._before: dict[str, int] = {}
        self._behind = Gauge(
            f"gouji_{service}_intake_behind_sources",
            "Sources of which the bus has facts that have not taken effect for a while: look.",
            registry=registry,
        )

    async def run(self) -> None:
        """Look for ever."""
        while True:
            try:
                await self.look()
            except (BusUnavailable, psycopg.OperationalError) as trouble:
                _log.warning("heads not compared", cause=type(trouble).__name__)
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Compare once. Raises `BusUnavailable`, `psycopg.OperationalError`."""
        heads = await self._bus.count_facts(self._pattern)
        async with self._pool.connection() as connection:
            cursor = await connection.execute(_BEHIND, (list(heads), list(heads.values())))
            behind: dict[str, int] = dict(await cursor.fetchall())
        stuck = behind.items() & self._before.items()
        self._before = behind
        self._behind.set(len(stuck))
        if stuck:
            _log.error("sources behind", sources=len(stuck))
