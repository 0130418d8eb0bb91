"""Room in the log for the tables of the coming days.

Law: asks and tells, makes nothing: partitions are the owner's, and a day without one is a day whose tables cannot be
opened. Days are those of UTC.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime

import structlog
from prometheus_client import Gauge

from engine.runtime.clock import Clock
from engine.store.port import StoreUnavailable

_log = structlog.get_logger(__name__)

LOW = 3
"""Fewer days ahead than this are told as a warning."""
LEAST = 1
"""Today and tomorrow: with fewer the engine says that it is not ready."""

EVERY_S = 10.0
"""Seconds from one look to the next."""

DaysAhead = Callable[[date], Awaitable[int]]
"""How many days after this one have room, without a gap; -1 when it has none itself. Raises `StoreUnavailable`."""


class Room:
    """Looks when readiness is asked for, but not all the time. `gauge` shows the days ahead."""

    def __init__(self, days_ahead: DaysAhead, clock: Clock, gauge: Gauge) -> None:
        self._days_ahead = days_ahead
        self._clock = clock
        self._gauge = gauge
        self._days = -1
        self._told = LOW
        self._next_look = clock.monotonic()

    async def is_enough(self) -> bool:
        """Whether today and tomorrow have room, as far as is known while the store is out of reach."""
        now = self._clock.monotonic()
        if now >= self._next_look:
            # Set first, so that a look that is given up is not repeated at once.
            self._next_look = now + EVERY_S
            await self._look()
        return self._days >= LEAST

    async def _look(self) -> None:
        today = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).date()
        try:
            self._days = await self._days_ahead(today)
        except StoreUnavailable:
            _log.warning("room in the log not known")
            return
        self._gauge.set(self._days)
        self._tell(min(self._days, LOW))

    def _tell(self, days: int) -> None:
        """Say it once for each day fewer, and once when it is mended."""
        if days < self._told:
            say = _log.warning if days >= LEAST else _log.error
            say("log runs out of room", days_ahead=days)
        elif days > self._told:
            _log.info("log has room again", days_ahead=days)
        self._told = days
