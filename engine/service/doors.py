"""Which subjects this replica serves: those of the shards that it leads.

Law: opens and closes; what is behind a door is the servicer's. A door whose shard is lost closes at once: nobody waits
for what is still under way there, which finds out by itself that it leads no more. While the bus is out of reach doors
stay shut and are tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

import structlog

from engine.runtime.bell import Bell
from engine.runtime.bus import Bus, BusUnavailable, RequestHandler, Subscription

_log = structlog.get_logger(__name__)

IN_FLIGHT = 256
"""Requests of one subject that are at work at once."""
_RETRY_S = 0.5
_AT_ONCE = 32


class Doors:
    """The requests of the shards that are led. `behind`: subject of a shard, and who answers there."""

    def __init__(self, bus: Bus, behind: Mapping[Callable[[int], str], RequestHandler]) -> None:
        self._bus = bus
        self._behind = behind
        self._wanted: set[int] = set()
        self._open: dict[int, list[Subscription]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()
        self._bell = Bell(_RETRY_S)

    def gained(self, shards: Collection[int]) -> None:
        """Have the doors of these shards opened."""
        self._wanted.update(shards)
        self._bell.ring()

    def lost(self, shards: Collection[int]) -> None:
        """Close the doors of these shards."""
        self._wanted.difference_update(shards)
        for shard in shards:
            self._shut(self._open.pop(shard, []))

    async def run(self) -> None:
        """Open what is wanted, for ever."""
        while True:
            try:
                async with self._opening:
                    await self._open_wanted()
            except BusUnavailable:
                _log.warning("doors not opened", shards=len(self._wanted - self._open.keys()))
            await self._bell.sleep()

    async def close(self) -> None:
        """Close all doors and wait for what is under way behind them (a clean stop)."""
        self._wanted.clear()
        async with self._opening:
            for shard in tuple(self._open):
                self._shut(self._open.pop(shard))
        await asyncio.gather(*self._closing)

    async def _open_wanted(self) -> None:
        while batch := sorted(self._wanted - self._open.keys())[:_AT_ONCE]:
            opened = await asyncio.gather(*(self._open_shard(shard) for shard in batch), return_exceptions=True)
            for failure in filter(None, opened):
                raise failure

    async def _open_shard(self, shard: int) -> None:
        doors = self._open[shard] = []
        try:
            for subject, handler in self._behind.items():
                doors.append(await self._bus.serve(subject(shard), handler, in_flight=IN_FLIGHT))
        except BusUnavailable:
            if self._open.get(shard) is doors:
                del self._open[shard]
            self._shut(doors)
            raise
        if self._open.get(shard) is not doors:
            self._shut(doors)

    def _shut(self, doors: list[Subscription]) -> None:
        for door in doors:
            task = asyncio.create_task(door.stop())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
