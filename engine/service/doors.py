"""Which subjects this replica serves: those of the shards that it leads.

Law: opens and closes; what is behind a door is the servicer's. A door whose shard is lost closes at once: nobody waits
for what is still under way there, which finds out by itself that it leads no more. While the bus is out of reach doors
stay shut and are tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import structlog

from engine.runtime.bell import Bell
from engine.runtime.bus import Bus, BusUnavailable, RequestHandler, Subscription

_log = structlog.get_logger(__name__)

IN_FLIGHT = 256
"""Requests of one subject that are at work at once."""
_RETRY_S = 0.5


class Doors:
    """The requests of the shards that are led. `behind`: subject of a shard, and who answers there."""

    def __init__(self, bus: Bus, behind: Mapping[Callable[[int], str], RequestHandler]) -> None:
        self._bus = bus
        self._behind = behind
        self._wanted: set[int] = set()
        self._open: dict[int, list[Subscription]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._bell = Bell(_RETRY_S)

    async def gained(self, shard: int) -> None:
        """Have the doors of this shard opened."""
        self._wanted.add(shard)
        self._bell.ring()

    async def lost(self, shard: int) -> None:
        """Close the doors of this shard."""
        self._wanted.discard(shard)
        self._shut(shard)

    async def run(self) -> None:
        """Open what is wanted, for ever."""
        while True:
            try:
                await self._open_wanted()
            except BusUnavailable:
                _log.warning("doors not opened", shards=len(self._wanted - self._open.keys()))
            await self._bell.sleep()

    async def close(self) -> None:
        """Close all doors and wait for what is under way behind them (a clean stop)."""
        self._wanted.clear()
        for shard in tuple(self._open):
            self._shut(shard)
        await asyncio.gather(*self._closing)

    async def _open_wanted(self) -> None:
        for shard in sorted(self._wanted - self._open.keys()):
            doors: list[Subscription] = []
            self._open[shard] = doors
            try:
                for subject, handler in self._behind.items():
                    doors.append(await self._bus.serve(subject(shard), handler, in_flight=IN_FLIGHT))
            finally:
                if len(doors) < len(self._behind) or shard not in self._wanted:
                    self._shut(shard, doors)

    def _shut(self, shard: int, doors: list[Subscription] | None = None) -> None:
        opened = self._open.pop(shard, [])
        for door in doors if doors is not None else opened:
            task = asyncio.create_task(door.stop())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
