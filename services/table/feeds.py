"""What one audience of a table is shown on this replica: updates in version order, without holes, for all its streams.

Law: no proto and no transport. A feed holds only the frames that some stream of it has still to send. A frame that does
not follow the last one is dropped and the hole filled from the engine's history, so what a stream sees depends on the
log and never on what the bus has lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from engine.runtime.bus import Message
from engine.runtime.faults import Aborted, Busy, DeadlineExceeded, Fault, Unavailable
from services.table.history import Source
from services.table.wire import PUBLIC, Connected, Passage, Sight, Unreadable, passage_of

MOST_FRAMES = 256
"""Frames kept for the slowest stream of a feed; one that is further behind is cut."""

PAUSE_S = 0.2
"""Between two attempts to fill a hole while the engine cannot be reached."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks and as what: `audience` is `public` or `seat0` … `seat5` as the log decides, the player a seat's."""

    audience: str
    player_id: str = ""

    @property
    def seat(self) -> int | None:
        """The viewer's seat; None for the public."""
        return None if self.audience == PUBLIC else int(self.audience.removeprefix("seat"))

    def may_see(self, sight: Sight, player_id: str) -> bool:
        """Whether this player looks in the right role: a seat's holder at his seat, everybody else with the public."""
        if self.seat is None:
            return not player_id or player_id not in sight.players
        return sight.players[self.seat] == player_id


@dataclass(frozen=True, slots=True)
class Frame:
    """A serialised update with the events from `first` to `last`."""

    first: int
    last: int
    body: bytes


class Follower(Protocol):
    """A stream of a feed. `have` is the version up to which its client was sent everything."""

    have: int
    player_id: str

    def wake(self) -> None:
        """There is something new."""

    def end(self, why: Exception) -> None:
        """Stop, and tell the client why."""


def role_changed(version: int) -> Aborted:
    """Tell a client that it looks in a role that it does not have any more."""
    return Aborted("Your role at this table has changed.", reason="ROLE_CHANGED", metadata={"version": str(version)})


class Feed:
    """One audience's updates. `version` is the newest that its streams can be sent, `views` counts changes of view alone.

    `is_ahead`: the engine's log is behind what was shown here, so the database has lost its end.
    """

    def __init__(self, viewer: Viewer, source: Source, sight: Sight, connected: Callable[[], Connected]) -> None:
        self.viewer = viewer
        self.sight = sight
        self.version = sight.version
        self.views = 0
        self.is_ahead = False
        self.heard = sight.version
        self._source = source
        self._connected = connected
        self._refreshed: bytes | None = None
        self._frames: deque[Frame] = deque()
        self._followers: set[Follower] = set()
        self._filling: asyncio.Task[None] | None = None
        self._is_closed = False

    async def receive(self, message: Message) -> None:
        """Take a live update from the bus."""
        try:
            self.offer(passage_of(message.payload))
        except Unreadable:
            _log.warning("update_unreadable", subject=message.subject)

    def offer(self, passage: Passage) -> None:
        """Take an update that may be old, next, or after a hole."""
        if passage.first == self.version + 1:
            self._append(passage)
        elif passage.last > self.version:
            self.expect(passage.last)

    def expect(self, version: int) -> None:
        """Fill the hole up to a version that somebody has heard of."""
        self.heard = max(self.heard, version)
        if self.heard > self.version:
            self.look()

    def look(self) -> None:
        """Ask the engine whether there is anything new."""
        if self._filling is None:
            self._filling = asyncio.create_task(self._fill())

    def follow(self, follower: Follower) -> None:
        """Serve this stream from now on."""
        self._followers.add(follower)

    def unfollow(self, follower: Follower) -> None:
        """Serve this stream no more."""
        self._followers.discard(follower)

    def after(self, version: int) -> Frame | None:
        """The kept frame that follows this version exactly, if there is one."""
        return next((frame for frame in self._frames if frame.first == version + 1), None)

    def refreshed(self) -> bytes:
        """The newest sight as an update without events, serialised once for all streams."""
        if self._refreshed is None:
            self._refreshed = self.sight.refreshed(self._connected())
        return self._refreshed

    def view_changed(self) -> None:
        """Let every stream send the view again."""
        self.views += 1
        self._refreshed = None
        self._wake()

    @property
    def is_followed(self) -> bool:
        """Whether any stream is served."""
        return bool(self._followers)

    def end(self, fault: Fault) -> None:
        """End every stream."""
        for follower in tuple(self._followers):
            follower.end(fault)

    async def close(self) -> None:
        """Stop filling."""
        self._is_closed = True
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.wait({self._filling})

    def _append(self, passage: Passage) -> None:
        if passage.sight is not None:
            self._part(passage.sight)
            self.sight = passage.sight
            self._refreshed = None
        self._frames.append(Frame(passage.first, passage.last, passage.body(self._connected())))
        self.version = passage.last
        self.heard = max(self.heard, self.version)
        self._forget()
        self._wake()

    def _part(self, sight: Sight) -> None:
        """Before anything of it is shown, end the streams that look in a role which is not theirs any more."""
        for follower in tuple(self._followers):
            if not self.viewer.may_see(sight, follower.player_id):
                follower.end(role_changed(follower.have))

    def _forget(self) -> None:
        """Drop what every stream has sent, and the oldest when a stream is too far behind."""
        sent = min((follower.have for follower in self._followers), default=self.version)
        while self._frames and (self._frames[0].last <= sent or len(self._frames) > MOST_FRAMES):
            self._frames.popleft()

    def _wake(self) -> None:
        for follower in self._followers:
            follower.wake()

    async def _fill(self) -> None:
        try:
            # The flag, because a call that ends in the very moment of a cancellation may swallow it.
            while not self._is_closed and await self._fill_once():
                pass
        except Fault as fault:
            self.end(fault)
        finally:
            self._filling = None

    async def _fill_once(self) -> bool:
        """Fetch one page; say whether more is missing."""
        known = self.version
        try:
            page = await self._source(known)
        except (Unavailable, DeadlineExceeded, Busy):
            await asyncio.sleep(PAUSE_S)
            return True
        if page.audience != self.viewer.audience:
            raise role_changed(self.version)
        self.is_ahead = page.sight.version < known
        if page.passage is not None and page.passage.first == self.version + 1:
            self._append(page.passage)
        if page.complete:
            self.heard = self.version
        return not page.complete
