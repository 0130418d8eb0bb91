"""Subscriptions that run until they are stopped, once, by whoever is first: their owner, their handler or their bus.

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
        self._stopped: asyncio.Event | None = None

    async def stop(self) -> None:
        """Stop after what is under way; harmless when repeated, and from inside the handler."""
        if self._stopped is not None:
            await self._stopped.wait()
            return
        self._stopped = asyncio.Event()
        try:
            await self._stop()
        finally:
            self._stopped.set()


class RunningSet:
    """All subscriptions of one bus."""

    def __init__(self) -> None:
        self._running: set[Running] = set()

    def add(self, stop: Stop) -> Running:
        """Keep a subscription that ends by this call."""

        async def stop_and_forget() -> None:
            try:
                await stop()
            finally:
                self._running.discard(running)

        running = Running(stop_and_forget)
        self._running.add(running)
        return running

    async def stop(self) -> None:
        """Stop every subscription."""
        await asyncio.gather(*(running.stop() for running in list(self._running)))
