"""A table that has streams on this replica: one subscription per audience, shared by its streams.

Law: no proto and no durable state. A room lives as long as a stream of its table. Who looks as what is decided by the
engine's log when a stream begins, and by every later sight.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from uuid import UUID

from engine.runtime import subjects
from engine.runtime.bus import Bus, Message, Subscription
from engine.runtime.faults import Fault
from services.table.feeds import Feed, Viewer, role_changed
from services.table.history import NOBODY, Asker, Historian, source
from services.table.presence import Presence
from services.table.streams import Place, Stream, cut_off, superseded, went_back
from services.table.wire import PUBLIC, Arrival, Connected, Page, Sight

QUIET_S = 5.0
"""After how long without news a room asks the engine whether it has missed the last message."""

SAME_MOMENT_S = 2.0
"""A Play stream older than this gives way to any other; younger ones go by the replicas' clocks."""


class Room:
    """One table with streams here."""

    def __init__(self, table_id: UUID, bus: Bus, historian: Historian, replica: str) -> None:
        publish = partial(bus.publish, subjects.peers(table_id))
        self.presence = Presence(replica, publish, changed=self._presence_changed, arrived=self._arrived)
        self.holders = 0
        self._table_id = table_id
        self._bus = bus
        self._historian = historian
        self._lock = asyncio.Lock()
        self._feeds: dict[Viewer, Feed] = {}
        self._subscriptions: dict[Viewer | None, Subscription] = {}
        self._plays: dict[str, Stream] = {}
        self._streams: set[Stream] = set()
        self._told = 0
        self._newest = 0
        self._stirred_at = time.monotonic()

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All streams of this table on this replica."""
        return tuple(self._streams)

    def connected(self) -> Connected:
        """The players who hold a stream of their own seat, on any replica."""
        return self.presence.connected

    async def join(self, place: Place, page: Page, after: int) -> Stream:
        """Begin a stream in the role that the page tells. Raises `Aborted` when the role has just changed."""
        viewer = viewer_of(page, place.player_id)
        async with self._lock:
            feed = await self._feed(viewer, page.sight)
            if feed.sight.version > page.sight.version and not viewer.may_see(feed.sight, place.player_id):
                raise role_changed(page.sight.version)
            stream = Stream(place, feed, page, after, self.connected)
            feed.follow(stream)
        self._streams.add(stream)
        await self._welcome(stream)
        return stream

    async def leave(self, stream: Stream) -> None:
        """Forget a stream, and its feed if it was the last one."""
        self._streams.discard(stream)
        stream.feed.unfollow(stream)
        if self._plays.get(stream.player_id) is stream:
            del self._plays[stream.player_id]
        if stream.feed.viewer.seat is not None:
            await self.presence.leave(stream.player_id, time.monotonic())
        async with self._lock:
            if not stream.feed.is_followed:
                await self._close(stream.feed)

    async def close(self) -> None:
        """Stop listening."""
        async with self._lock:
            for feed in tuple(self._feeds.values()):
                await self._close(feed)
            for subscription in self._subscriptions.values():
                await subscription.stop()

    def told(self, version: int) -> None:
        """Note that the engine has spoken of this version."""
        self._told = max(self._told, version)

    async def tick(self, now: float) -> None:
        """Look for feeds that lag behind what was known a tick ago, and for a silence that may be a lost message."""
        await self.presence.tick(now)
        if self.presence.is_cut_off(now):
            self._send_away(cut_off())
        if any(feed.is_ahead for feed in self._feeds.values()):
            await self._begin_anew()
        for feed in self._feeds.values():
            feed.expect(self._newest)
        newest = max((self._told, *(feed.version for feed in self._feeds.values())))
        if newest > self._newest:
            self._newest, self._stirred_at = newest, now
        elif now - self._stirred_at > QUIET_S and self._feeds:
            self._stirred_at = now
            next(iter(self._feeds.values())).look()

    def _send_away(self, why: Fault) -> None:
        for stream in self.streams:
            stream.end(why)

    async def _begin_anew(self) -> None:
        """Forget a table whose log has lost its end, for everything here may be of what is no more."""
        async with self._lock:
            for feed in tuple(self._feeds.values()):
                await self._close(feed)
        self._told = self._newest = 0
        self._send_away(went_back())

    async def _feed(self, viewer: Viewer, sight: Sight) -> Feed:
        await self._listen_to_peers()
        feed = self._feeds.get(viewer)
        if feed is None:
            asker = Asker(viewer.player_id) if viewer.player_id else NOBODY
            feed = Feed(viewer, source(self._historian, self._table_id, asker), sight, self.connected)
            subject = subjects.live(self._table_id, viewer.audience)
            self._subscriptions[viewer] = await self._bus.subscribe(subject, feed.receive)
            self._feeds[viewer] = feed
            feed.look()
        return feed

    async def _listen_to_peers(self) -> None:
        if None not in self._subscriptions:
            self._subscriptions[None] = await self._bus.subscribe(subjects.peers(self._table_id), self._hear)
            await self.presence.tell(time.monotonic())

    async def _hear(self, message: Message) -> None:
        await self.presence.hear(message, time.monotonic())

    async def _welcome(self, stream: Stream) -> None:
        if stream.feed.viewer.seat is None:
            return
        arrival = self._supersede(stream) if stream.place.is_play else None
        await self.presence.enter(stream.player_id, time.monotonic(), arrival)
        stream.views = stream.feed.views

    def _supersede(self, stream: Stream) -> Arrival:
        if older := self._plays.get(stream.player_id):
            older.end(superseded())
        self._plays[stream.player_id] = stream
        return stream.arrival

    def _arrived(self, arrival: Arrival) -> Arrival | None:
        """End our older stream of that player; or tell of ours, when it is the newer one and the peer missed it."""
        ours = self._plays.get(arrival.player_id)
        if ours is None:
            return None
        is_old = time.monotonic() - ours.began_at > SAME_MOMENT_S
        if not is_old and ours.arrival.is_after(arrival):
            return ours.arrival
        ours.end(superseded())
        return None

    def _presence_changed(self) -> None:
        for feed in self._feeds.values():
            feed.view_changed()

    async def _close(self, feed: Feed) -> None:
        if self._feeds.pop(feed.viewer, None) is not None:
            await self._subscriptions.pop(feed.viewer).stop()
            await feed.close()


def viewer_of(page: Page, player_id: str) -> Viewer:
    """Tell as what a player looks, by the engine's answer."""
    return Viewer(page.audience, "" if page.audience == PUBLIC else player_id)
