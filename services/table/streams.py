"""One client's stream: what its feed has, from the version that the client has seen, with answers and heartbeats between.

Law: no proto and no table state; a stream knows its place and its feed. Nothing is queued for it but a few answers: the
frames wait in the feed, and a stream that reads so slowly that they are gone, or that takes no frame for `STALL_S`, is
cut and told from which version to resume.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import uuid4

from engine.runtime.faults import Aborted, Busy, DeadlineExceeded, Unavailable
from services.table.feeds import PAUSE_S, Feed, role_changed
from services.table.history import Source
from services.table.wire import Arrival, Connected, Envelope, Page

HEARTBEAT_S = 5.0
"""After how long without any frame a heartbeat is sent."""

STALL_S = 20.0
"""How long one frame may take to be accepted by the client's side."""

MOST_ANSWERS = 8
"""Answers that may wait to be sent; the next request is not read before."""

Write = Callable[[bytes], Awaitable[None]]


def superseded() -> Aborted:
    """Tell a client that the same player plays on another stream now, so it must not come back by itself."""
    return Aborted("A newer stream of yours plays at this table.", reason="SUPERSEDED")


def cut_off() -> Unavailable:
    """Tell a client that nothing new can reach it here."""
    return Unavailable("This replica does not hear the table: resume elsewhere.", reason="CUT_OFF")


def went_back() -> Unavailable:
    """Tell a client that the log has lost what it was shown, so that it begins anew, with a snapshot."""
    return Unavailable("The table's log has lost its end: begin anew.", reason="WENT_BACK")


@dataclass(frozen=True, slots=True)
class Place:
    """Whose stream it is, in which form it is written, and how its own past is fetched."""

    player_id: str
    envelope: Envelope
    source: Source
    is_play: bool = False


class Stream:
    """Sends a feed's frames to one client, from `have` on. Made by a room, run by the servicer."""

    def __init__(self, place: Place, feed: Feed, page: Page, after: int, connected: Callable[[], Connected]) -> None:
        """Begin after this version, with the page of history that follows it."""
        self.arrival = Arrival(place.player_id, uuid4().hex, time.time_ns() // 1_000_000)
        self.have = after
        self._page = page
        self.views = feed.views
        self.began_at = time.monotonic()
        self.feed = feed
        self.place = place
        self.player_id = place.player_id
        self._connected = connected
        self._is_live = False
        self._is_done = False
        self._ended_by: Exception | None = None
        self._news = asyncio.Event()
        self._answers: asyncio.Queue[bytes] = asyncio.Queue(MOST_ANSWERS)

    def wake(self) -> None:
        """There is something new."""
        self._news.set()

    def end(self, why: Exception) -> None:
        """Send nothing more and tell the client why."""
        self.feed.unfollow(self)
        self._ended_by = self._ended_by or why
        self._news.set()

    def finish(self) -> None:
        """Send nothing more: the client has said goodbye."""
        self._is_done = True
        self._news.set()

    async def answer(self, response: bytes) -> None:
        """Send this response between the updates; waits while too many are unsent."""
        await self._answers.put(response)
        self._news.set()

    async def run(self, write: Write) -> None:
        """Send everything, for ever. Raises the fault that ends it; returns when finished."""
        await self._send(write, self._opening(self._page))
        while not self._is_done:
            self._news.clear()
            while (response := await self._next()) is not None:
                await self._send(write, response)
            await self._rest(write)

    def _opening(self, page: Page) -> bytes:
        """The first frame: a snapshot for who has seen nothing or more than there is, else the first of the tail."""
        if self.have == 0 or self.have > page.sight.version:
            self.have = page.sight.version
            return self.place.envelope.snapshot(page.sight.snapshot(self._connected()))
        if page.passage is None:
            return self.place.envelope.update(page.sight.refreshed(self._connected()))
        return self._passage(page)

    async def _next(self) -> bytes | None:
        if self._ended_by is not None:
            raise self._ended_by
        if not self._answers.empty():
            return self._answers.get_nowait()
        if self.have < self.feed.version:
            return await self._frame()
        self._is_live = self._is_live or self.have == self.feed.version
        return self._view()

    async def _frame(self) -> bytes | None:
        frame = self.feed.after(self.have)
        if frame is None:
            return await self._past()
        self.have, self._is_live = frame.last, True
        return self.place.envelope.update(frame.body)

    async def _past(self) -> bytes | None:
        """Fetch what the feed has forgotten, for a client that has just come; one that was up to date reads too slowly."""
        if self._is_live:
            raise self._too_slow()
        try:
            page = await self.place.source(self.have)
        except (Unavailable, DeadlineExceeded, Busy):
            await asyncio.sleep(PAUSE_S)
            return None
        if page.audience != self.feed.viewer.audience:
            raise role_changed(self.have)
        return self._passage(page) if page.passage is not None else None

    def _passage(self, page: Page) -> bytes:
        """Send a page of history. Raises `Unavailable` when it does not follow."""
        if page.passage is None or page.passage.first != self.have + 1:
            raise Unavailable("The table's history has a hole.")
        self.have = page.passage.last
        return self.place.envelope.update(page.passage.body(self._connected()))

    def _view(self) -> bytes | None:
        """The view again, when something has changed in it that is no event."""
        if self.views == self.feed.views or self.have != self.feed.sight.version:
            return None
        self.views = self.feed.views
        return self.place.envelope.update(self.feed.refreshed())

    async def _rest(self, write: Write) -> None:
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                await self._news.wait()
        except TimeoutError:
            await self._send(write, self.place.envelope.heartbeat(self.have, time.time_ns() // 1_000_000))

    async def _send(self, write: Write, response: bytes) -> None:
        try:
            async with asyncio.timeout(STALL_S):
                await write(response)
        except TimeoutError:
            raise self._too_slow() from None

    def _too_slow(self) -> Busy:
        return Busy("You read too slowly.", reason="SLOW_READER", metadata={"version": str(self.have)})
