"""Subscriptions that run until they are stopped, once, by whoever is first: their owner or their bus.

Law: bookkeeping only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

Stop = Callable[[], Awaitable[None]]


class Running:
    """A subscription; whoever stops it waits until it has stopped."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._stopping: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """Stop after what is under way; harmless when repeated."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._end())
        await asyncio.shield(self._stopping)

    async def _end(self) -> None:
        await self._stop()


class RunningSet:
    """All subscriptions of one bus."""

    def __init__(self) -> None:
        self._running: set[Running] = set()

    def add(self, stop: Stop) -> Running:
        """Keep a subscription that ends by this call."""

        async def stop_and_forget() -> None:
            self._running.discard(running)
            await stop()

        running = Running(stop_and_forget)
        self._running.add(running)
        return running

    async def stop(self) -> None:
        """Stop every subscription."""
        await asyncio.gather(*(running.stop() for running in list(self._running)))
