"""All rooms of this replica: streams begin and end here, and one clock looks after them.

Law: no proto and no durable state; a room exists exactly as long as something holds it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from engine.runtime.bus import Bus, BusUnavailable
from engine.runtime.faults import Fault, NotYourSeat, Unavailable
from services.table.history import Asker, Historian, source
from services.table.measures import Measures
from services.table.rooms import Room
from services.table.streams import Place, Stream
from services.table.wire import PLAY, PUBLIC, WATCH, Connected, Page

TICK_S = 0.25
"""How often rooms are looked after; a feed that lags behind another one for that long asks the engine."""

DRAIN_S = 2.0
"""Over how long the streams of a stopping replica are sent away, so that they do not all come back at once."""


class Watchers:
    """The rooms by table."""

    def __init__(self, bus: Bus, historian: Historian, measures: Measures) -> None:
        self._bus = bus
        self._measures = measures
        self._historian = historian
        self._replica = uuid4().hex
        self._rooms: dict[UUID, Room] = {}
        self.is_draining = False

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All streams of this replica."""
        return tuple(stream for room in self._rooms.values() for stream in room.streams)

    @property
    def tables(self) -> int:
        """How many tables have streams here."""
        return len(self._rooms)

    @asynccontextmanager
    async def stream(self, table_id: UUID, asker: Asker, after: int, *, is_play: bool) -> AsyncIterator[Stream]:
        """Hold a stream in the role that the log decides. Raises `NotYourSeat` for a Play stream of one not seated."""
        if self.is_draining:
            raise _draining()
        past = source(self._historian, table_id, asker)
        page = await past(after)
        if is_play and page.audience == PUBLIC:
            raise NotYourSeat
        place = Place(asker.player_id, PLAY if is_play else WATCH, past, is_play)
        async with self._room(table_id) as room, self._joined(room, place, page, after) as stream:
            try:
                yield stream
            except Fault as fault:
                self._measures.ended.labels(fault.reason).inc()
                raise

    def told(self, table_id: UUID, version: int) -> None:
        """Note that the engine has spoken of this version, so that it is missed if it does not come."""
        if room := self._rooms.get(table_id):
            room.told(version)

    def connected(self, table_id: UUID) -> Connected:
        """The players known to be connected at a table."""
        room = self._rooms.get(table_id)
        return room.connected() if room else frozenset()

    async def run(self) -> None:
        """Look after the rooms until cancelled."""
        while True:
            await asyncio.sleep(TICK_S)
            await self._tick()

    async def _tick(self) -> None:
        # A method of its own, so that no room outlives its streams in a variable while nothing goes on.
        for room in tuple(self._rooms.values()):
            await room.tick(time.monotonic())

    async def drain(self) -> None:
        """Take no new streams and send the present ones away, spread over `DRAIN_S`."""
        self.is_draining = True
        streams = self.streams
        for stream in streams:
            stream.end(_draining())
            await asyncio.sleep(DRAIN_S / len(streams))

    @asynccontextmanager
    async def _room(self, table_id: UUID) -> AsyncIterator[Room]:
        room = self._rooms.get(table_id) or Room(table_id, self._bus, self._historian, self._replica)
        self._rooms[table_id] = room
        room.holders += 1
        try:
            yield room
        finally:
            room.holders -= 1
            if room.holders == 0:
                del self._rooms[table_id]
                await room.close()

    @asynccontextmanager
    async def _joined(self, room: Room, place: Place, page: Page, after: int) -> AsyncIterator[Stream]:
        try:
            stream = await room.join(place, page, after)
        except BusUnavailable as gone:
            raise Unavailable from gone
        try:
            yield stream
        finally:
            await room.leave(stream)


def _draining() -> Fault:
    return Unavailable("This replica is stopping: resume elsewhere.", reason="DRAINING")
