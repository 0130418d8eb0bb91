"""A bell for a loop that sleeps: it wakes when rung, and now and then by itself.

Law: knows nothing of what the loop does. A ring while the loop is at work is not lost.
"""

from __future__ import annotations

import asyncio


class Bell:
    """Wakes at least every `interval_s` seconds."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the loop, now or as soon as it sleeps."""
        self._rung.set()

    async def sleep(self) -> None:
        """Wait for a ring, or for the interval to pass."""
        try:
            async with asyncio.timeout(self._interval_s):
                await self._rung.wait()
        except TimeoutError:
            return
        finally:
            self._rung.clear()
