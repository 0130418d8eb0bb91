"""When tables run out of time: one clock for all tables of this replica.

Law: this file knows when, never what. A deadline comes from the log (the table arms it after every append) or from the
store (a new leader finds those of tables that nobody has loaded yet). Firing is a wish: the table itself checks the
fence, `since_version`, in its own turn, so a deadline that was armed twice takes effect once. None is fired while those
whose time it is could not be heard.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from uuid import UUID

import structlog

from engine.runtime.bell import Bell
from engine.runtime.clock import Clock
from engine.service.shards import Shards
from engine.store.port import Deadline, EventStore, StoreUnavailable, shard_of

_log = structlog.get_logger(__name__)

Fire = Callable[[UUID, Deadline], Awaitable[None]]

_AT_ONCE = 64
_FOUND_AT_ONCE = 1000
_LONGEST_MS = 60_000
_SLACK = 1000


class Deadlines:
    """Every armed deadline, and the one task that waits for the earliest.

    `in_earshot` returns once it is sure that players can reach this replica.
    """

    def __init__(
        self,
        store: EventStore,
        clock: Clock,
        shards: Shards,
        sweep_ms: int,
        in_earshot: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._shards = shards
        self._in_earshot = in_earshot
        self._armed: dict[UUID, Deadline] = {}
        self._queue: list[tuple[int, UUID, int]] = []
        self._changed = asyncio.Event()
        self._bell = Bell(sweep_ms / 1000)
        self._firing: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    def __len__(self) -> int:
        return len(self._armed)

    def arm(self, table_id: UUID, deadline: Deadline | None) -> None:
        """Make this the table's only deadline; None disarms it."""
        if deadline is None:
            self._armed.pop(table_id, None)
        elif self._armed.get(table_id) != deadline:
            self._armed[table_id] = deadline
            heapq.heappush(self._queue, (deadline.at_ms, table_id, deadline.since_version))
            self._drop_the_replaced()
            self._changed.set()

    def gained(self, shards: Collection[int]) -> None:
        """Look for the deadlines of these shards at the next sweep, which is now."""
        del shards
        self._bell.ring()

    def lost(self, shards: Collection[int]) -> None:
        """Forget the deadlines of these shards."""
        for table_id in [table for table in self._armed if shard_of(table) in shards]:
            del self._armed[table_id]

    async def sweep(self) -> None:
        """Arm what the store knows and this replica does not."""
        for head in await self._store.next_deadlines(self._shards.held(), _FOUND_AT_ONCE):
            if head.table_id not in self._armed:
                self.arm(head.table_id, head.deadline)

    async def keep_sweeping(self) -> None:
        """Sweep now and then, for ever, and as soon as a shard is gained."""
        while True:
            try:
                await self.sweep()
            except StoreUnavailable:
                _log.warning("deadlines not swept")
            await self._bell.sleep()

    async def run(self, fire: Fire) -> None:
        """Fire deadlines as they come, for ever."""
        while True:
            self._changed.clear()
            if self._next_ms() <= 0:
                await self._in_earshot()
            for table_id, deadline in self._due():
                await self._slots.acquire()
                self._begin(self._fire(fire, table_id, deadline))
            await _until(self._changed, self._next_ms())

    async def settle(self) -> None:
        """Wait for the deadlines that are being fired (a clean stop)."""
        await asyncio.gather(*self._firing, return_exceptions=True)

    def _due(self) -> Iterator[tuple[UUID, Deadline]]:
        """Take what is due out of the queue; what was armed anew or disarmed since is passed over."""
        while self._queue and self._queue[0][0] <= self._clock.now_ms():
            at_ms, table_id, since_version = heapq.heappop(self._queue)
            deadline = Deadline(at_ms, since_version)
            if self._armed.get(table_id) == deadline:
                del self._armed[table_id]
                yield table_id, deadline

    def _begin(self, firing: Coroutine[None, None, None]) -> None:
        # A method of its own, so that no task outlives its table in a variable while the loop sleeps.
        task = asyncio.create_task(firing)
        self._firing.add(task)
        task.add_done_callback(self._firing.discard)

    def _drop_the_replaced(self) -> None:
        """Keep the queue in proportion to what is armed, however often deadlines are replaced."""
        if len(self._queue) > 2 * len(self._armed) + _SLACK:
            self._queue = [(one.at_ms, table_id, one.since_version) for table_id, one in self._armed.items()]
            heapq.heapify(self._queue)

    def _next_ms(self) -> int:
        return min(self._queue[0][0] - self._clock.now_ms(), _LONGEST_MS) if self._queue else _LONGEST_MS

    async def _fire(self, fire: Fire, table_id: UUID, deadline: Deadline) -> None:
        try:
            await fire(table_id, deadline)
        finally:
            self._slots.release()


async def _until(event: asyncio.Event, ms: int) -> None:
    """Wait for the event, this long at most."""
    try:
        async with asyncio.timeout(max(ms, 0) / 1000):
            await event.wait()
    except TimeoutError:
        return
