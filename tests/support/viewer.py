"""A client's end of a stream without a network: collects what it is sent and can stop reading.

Law: knows the table's protos and `services.table.watchers`; asserts nothing but what every client may rely on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from uuid import UUID

from gouji.game.v1 import view_pb2
from gouji.table.v1 import table_pb2

from engine.runtime.faults import Fault
from services.table.history import Asker
from services.table.streams import Stream
from services.table.watchers import Watchers


@dataclass
class Viewer:
    """What a client has got. `reads` is cleared to stop reading."""

    is_play: bool
    responses: list[table_pb2.PlayResponse | table_pb2.WatchResponse] = field(default_factory=list)
    fault: Fault | None = None
    stream: Stream | None = None
    reads: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, raw: bytes) -> None:
        """Take a response as the transport does: not before the client reads."""
        await self.reads.wait()
        kind = table_pb2.PlayResponse if self.is_play else table_pb2.WatchResponse
        self.responses.append(kind.FromString(raw))

    @property
    def kinds(self) -> list[str | None]:
        """The kinds of the responses, in order."""
        return [response.WhichOneof("response") for response in self.responses]

    @property
    def marks(self) -> list[str]:
        """The marks of the events, in order."""
        return [
            versioned.event.warned.reason
            for response in self.responses
            if response.HasField("update")
            for versioned in response.update.events
        ]

    @property
    def views(self) -> list[view_pb2.View]:
        """Every view, in order."""
        found = []
        for response in self.responses:
            body = response.update if response.HasField("update") else response.snapshot
            if body.HasField("view"):
                found.append(body.view)
        return found

    def connected(self) -> list[int]:
        """The seats that the last view shows connected."""
        return [seat.seat for seat in self.views[-1].public.seats if seat.connected]


@asynccontextmanager
async def viewing(
    watchers: Watchers, table_id: UUID, player: str, after: int = 0, *, is_play: bool = False
) -> AsyncIterator[Viewer]:
    """Hold a stream for a while."""
    viewer = Viewer(is_play)
    viewer.reads.set()
    running = asyncio.create_task(_view(watchers, table_id, player, after, viewer))
    await until(lambda: bool(viewer.responses) or running.done())
    try:
        yield viewer
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def _view(watchers: Watchers, table_id: UUID, player: str, after: int, viewer: Viewer) -> None:
    try:
        async with watchers.stream(table_id, Asker(player), after, is_play=viewer.is_play) as stream:
            viewer.stream = stream
            await stream.run(viewer.write)
    except Fault as fault:
        viewer.fault = fault


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until a condition holds; fail when it does not come to hold."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - a test may not reach into what it waits for
            await asyncio.sleep(0.005)
