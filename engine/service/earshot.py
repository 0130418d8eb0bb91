"""Whether players can reach this replica: what it says on the bus has to come back to it.

Law: time that players could not use does not count, so no deadline is passed out of earshot. Knows no deadline and no
lease; it asks the bus and tells of trouble.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from uuid import uuid4

import structlog

from engine.runtime import subjects
from engine.runtime.bus import Bus, BusUnavailable, Message, Subscription

_log = structlog.get_logger(__name__)

_PATIENCE_S = 2.0
_AGAIN_S = 0.2
_LISTEN_S = 1.0
_SILENCE_S = 4.0
"""How long echoes may fail before others are better placed."""


class Earshot:
    """Echoes of one replica. `trouble` is called whenever one does not come back."""

    def __init__(self, bus: Bus, trouble: Callable[[], None]) -> None:
        self._bus = bus
        self._subject = subjects.echo(uuid4().hex)
        self._trouble = trouble
        self._calls = 0
        self._heard = 0
        self._deaf_since: float | None = None
        self._stirred = asyncio.Condition()

    async def listen(self) -> Subscription:
        """Begin to hear echoes. Raises `BusUnavailable`."""
        return await self._bus.subscribe(self._subject, self._hear)

    async def run(self) -> None:
        """Call now and then, for ever, so that trouble is noticed that is over before anybody asks."""
        while True:
            await self.confirmed()
            await asyncio.sleep(_LISTEN_S)

    def is_heard(self) -> bool:
        """Whether echoes come back, or have failed for a little while only."""
        return self._deaf_since is None or time.monotonic() - self._deaf_since < _SILENCE_S

    async def confirmed(self) -> None:
        """Return once a call made from now on has come back."""
        while not await self._echoes():
            self._deaf_since = self._deaf_since or time.monotonic()
            self._trouble()
            _log.warning("out of earshot", subject=self._subject)
            await asyncio.sleep(_AGAIN_S)
        self._deaf_since = None

    async def _echoes(self) -> bool:
        self._calls += 1
        call = self._calls
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._bus.publish(self._subject, str(call).encode())
                async with self._stirred:
                    await self._stirred.wait_for(lambda: self._heard >= call)
        except (BusUnavailable, TimeoutError):
            return False
        return True

    async def _hear(self, message: Message) -> None:
        async with self._stirred:
            self._heard = max(self._heard, int(message.payload))
            self._stirred.notify_all()
