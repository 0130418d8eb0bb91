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

    async def sleep(self, at_most_s: float | None = None) -> None:
        """Wait for a ring, or for the interval to pass, or for `at_most_s` seconds if that is sooner."""
        longest_s = self._interval_s if at_most_s is None else min(self._interval_s, at_most_s)
        try:
            async with asyncio.timeout(longest_s):
                await self._rung.wait()
        except TimeoutError:
            return
        finally:
            self._rung.clear()
