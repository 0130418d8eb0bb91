"""A desk: work that comes in at any rate, done by at most so many at once, with a bounded queue before it.

Law: knows neither bus nor transport. With one worker the work is done in the order in which it came.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

_log = structlog.get_logger(__name__)

Item = TypeVar("Item")


class Desk(Generic[Item]):
    """Handles items with at most `in_flight` at once and at most `waiting` in the queue.

    `turned_away` is called for each that finds no room.
    """

    def __init__(
        self,
        name: str,
        handle: Callable[[Item], Awaitable[None]],
        *,
        in_flight: int,
        waiting: int,
        turned_away: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._handle = handle
        self._in_flight = in_flight
        self._room = in_flight + waiting
        self._queue: deque[Item] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._tell = turned_away
        self._turned_away = 0
        self._open = True

    def offer(self, item: Item) -> bool:
        """Take the item, or say that there is no room for it."""
        if not self._open or self._room == 0:
            self._turn_away()
            return False
        self._room -= 1
        self._queue.append(item)
        if len(self._workers) < self._in_flight:
            self._hire()
        return True

    async def stop(self, grace: float = 10.0) -> None:
        """Take nothing more, finish what was taken, and after `grace` seconds drop what is left."""
        self._open = False
        workers = {worker for worker in self._workers if worker is not asyncio.current_task()}
        if not workers:
            return
        _, late = await asyncio.wait(workers, timeout=grace)
        for worker in late:
            worker.cancel()
        if late:
            await asyncio.wait(late, timeout=grace)

    def _turn_away(self) -> None:
        self._turned_away += 1
        self._tell()
        if self._turned_away.bit_count() == 1:  # tell of 1, 2, 4, 8 … rather than flood the log too
            _log.warning("turned_away", desk=self._name, times=self._turned_away)

    def _hire(self) -> None:
        worker = asyncio.create_task(self._work())
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        while self._queue:
            structlog.contextvars.clear_contextvars()
            try:
                await self._handle(self._queue.popleft())
            except Exception:  # noqa: BLE001 - one broken item must not keep the others waiting
                _log.exception("handler_failed", desk=self._name)
            finally:
                self._room += 1
        # The done callback comes a turn too late: an item offered in between would find a worker that has left.
        self._workers.difference_update({asyncio.current_task()})
