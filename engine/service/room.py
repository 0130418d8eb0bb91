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

_log = structlog.get_logger(__name__)

LOW = 3
"""Fewer days ahead than this are told as a warning."""
LEAST = 1
"""Today and tomorrow: with fewer the engine says that it is not ready."""

DaysAhead = Callable[[date], Awaitable[int]]
"""How many days after this one have room, without a gap; -1 when it has none itself. Raises `StoreUnavailable`."""


class Room:
    """Looks whenever readiness is asked for. `gauge` shows the days ahead."""

    def __init__(self, days_ahead: DaysAhead, clock: Clock, gauge: Gauge) -> None:
        self._days_ahead = days_ahead
        self._clock = clock
        self._gauge = gauge
        self._told = LOW

    async def is_enough(self) -> bool:
        """Whether today and tomorrow have room. Raises `StoreUnavailable`."""
        days = await self._days_ahead(datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).date())
        self._gauge.set(days)
        self._tell(min(days, LOW))
        return days >= LEAST

    def _tell(self, days: int) -> None:
        """Say it once for each day fewer, and once when it is mended."""
        if days < self._told:
            say = _log.warning if days >= LEAST else _log.error
            say("log runs out of room", days_ahead=days)
        elif days > self._told:
            _log.info("log has room again", days_ahead=days)
        self._told = days
