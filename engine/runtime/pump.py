"""A pump: takes one thing after another and handles it, until it is stopped between two of them.

Law: knows neither bus nor transport. What is being handled is finished; what is only waited for is given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

_log = structlog.get_logger(__name__)

Item = TypeVar("Item")


class Pump(Generic[Item]):
    """Runs from its construction. `died` is told of an error that neither `take` nor `handle` dealt with."""

    def __init__(
        self,
        take: Callable[[], Awaitable[Item]],
        handle: Callable[[Item], Awaitable[None]],
        died: Callable[[BaseException], None],
    ) -> None:
        self._take = take
        self._handle = handle
        self._died = died
        self._handling = False
        self._stopping = False
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._report)

    async def stop(self, grace: float = 10.0) -> None:
        """Finish what is being handled, within `grace` seconds, and take nothing more."""
        self._stopping = True
        if self._task is asyncio.current_task():
            return
        if not self._handling:
            self._task.cancel()
        _, late = await asyncio.wait({self._task}, timeout=grace)
        if late:
            self._task.cancel()
            await asyncio.wait(late, timeout=grace)

    async def _run(self) -> None:
        while not self._stopping:
            structlog.contextvars.clear_contextvars()
            item = await self._take()
            self._handling = True
            await self._handle(item)
            self._handling = False

    def _report(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical("pump_died", exc_info=error)
            self._died(error)
