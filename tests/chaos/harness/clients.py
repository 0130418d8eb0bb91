"""Clients that keep a record of their own: every answer, every event, every version of a view.

Law: ordinary clients of the services through their proxies; what they note is what came over the wire, noted before
anything is made of it. A stream goes to either table service, as a balancer would send it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

import grpc
from gouji.game.v1 import view_pb2
from gouji.table.v1 import table_pb2 as pb
from gouji.table.v1 import table_pb2_grpc as rpc

from engine.runtime.grpc_client import DialOptions
from services.bots.faults import TryAgain, fault_of
from services.bots.pauses import growing
from services.bots.player import Line
from services.bots.sight import Answer, Choice, Received
from services.bots.table_client import PlayStream, TableClient
from tests.chaos.harness.evidence import PUBLIC, Kind, Mark, Said, Seen, TurnedAway
from tests.chaos.harness.truth import digest_of, view_digest

SILENCE_S = 15.0
EVERY = 5
"""Every so many versions the content of views is noted, too."""
THINK_S = 0.08
DAWDLE_S = 4.5
DAWDLING = 0.004

Token = Callable[[str], str]
Request = TypeVar("Request")
Response = TypeVar("Response")


class Book:
    """What all clients noted."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.seen: list[Seen] = []
        self.turned_away: list[TurnedAway] = []
        self.tables: set[UUID] = set()

    def stream(self, table_id: str, player: str, after: int) -> Seen:
        """Open a page for a stream."""
        seen = Seen(UUID(table_id), player, after)
        self.seen.append(seen)
        self.tables.add(seen.table_id)
        return seen

    def heard(self, table_id: str, player: str, command_id: str, outcome: pb.Outcome) -> None:
        """Note an answer."""
        accepted = outcome.accepted.version if outcome.WhichOneof("outcome") == "accepted" else None
        self.said.append(Said(UUID(table_id), player, UUID(command_id), accepted))
        self.tables.add(UUID(table_id))

    def accepted(self, table_id: UUID) -> int:
        """How many commands of a table were accepted."""
        return sum(said.table_id == table_id and said.accepted_at is not None for said in self.said)


def dial(address: str) -> grpc.aio.Channel:
    """A channel with a connection of its own, which notices a dead link.

    Its players come back by themselves. gRPC's own retries (1.85.3) have been seen to go round without a pause when a
    connection was lost under many streams, on the event loop and until all memory was gone.
    """
    own = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    options = [*DialOptions(address).arguments(), *own]
    return grpc.aio.insecure_channel(address, options=options)


class Guest:
    """One player as a client of the table services: what `services.bots.player` calls a table.

    `think_s`: how long he thinks at most; `dawdling`: how often for so long that the clock decides.
    """

    def __init__(
        self,
        name: str,
        channels: Sequence[grpc.aio.Channel],
        token: Token,
        book: Book,
        chance: random.Random,
        *,
        think_s: float = THINK_S,
        dawdling: float = DAWDLING,
    ) -> None:
        self.name = name
        self._channels = channels
        self._token = partial(token, name)
        self._book = book
        self._chance = chance
        self._think_s = think_s
        self._dawdling = dawdling

    async def open_table(self, command_id: str, variant_key: str, deals: int) -> str:
        """Open a table. Raises `Stop`, `TryAgain`."""
        request = pb.OpenTableRequest(command_id=command_id, variant_key=variant_key, deals=deals)
        opened = await self._ask(self._stub().OpenTable, request)
        outcome = pb.Outcome(accepted=pb.Accepted(version=opened.version))
        self._book.heard(opened.table_id, self.name, command_id, outcome)
        return str(opened.table_id)

    async def take_seat(self, table_id: str, command_id: str, seat: int) -> Answer:
        """Ask for a seat. Raises `Stop`, `TryAgain`."""
        request = pb.TakeSeatRequest(table_id=table_id, command_id=command_id, seat=seat)
        taken = await self._ask(self._stub().TakeSeat, request)
        self._book.heard(table_id, self.name, command_id, taken.outcome)
        return _answer(command_id, taken.outcome)

    async def play(self, table_id: str, after_version: int) -> Line:
        """Open a stream after a version. Raises `Stop`, `TryAgain`."""
        page = Page(self._book, self._book.stream(table_id, self.name, after_version))
        client = TableClient(self._chance.choice(self._channels), self._token, page.play)
        line = await client.play(table_id, after_version)
        return Pondering(line, self._chance, think_s=self._think_s, dawdling=self._dawdling)

    async def watch(self, table_id: str) -> None:
        """Watch a table to its end, from either service, coming back as often as needed. Raises `Stop`."""
        after, pauses = 0, growing()
        while True:
            page = Page(self._book, self._book.stream(table_id, self.name, after))
            try:
                if await self._watch_on(page, table_id, after):
                    return
            except TryAgain:
                await asyncio.sleep(next(pauses))
            if page.reached > after:
                after, pauses = page.reached, growing()

    async def _watch_on(self, page: Page, table_id: str, after: int) -> bool:
        """Follow one stream to its end; True when the match is over."""
        request = pb.WatchRequest(table_id=table_id, after_version=after)
        call = self._stub().Watch(request, metadata=self._metadata())
        try:
            while True:
                async with asyncio.timeout(SILENCE_S):
                    response = await call.read()
                if not isinstance(response, pb.WatchResponse):
                    return False
                page.watch(response)
                if page.is_over:
                    return True
        except TimeoutError:
            raise TryAgain("SILENCE") from None
        except grpc.aio.AioRpcError as error:
            raise fault_of(error) from error
        finally:
            call.cancel()

    async def _ask(self, method: grpc.aio.UnaryUnaryMultiCallable[Request, Response], request: Request) -> Response:
        try:
            return await method(request, metadata=self._metadata(), timeout=10)
        except grpc.aio.AioRpcError as error:
            raise fault_of(error) from error

    def _stub(self) -> rpc.TableServiceAsyncStub:
        stub: rpc.TableServiceAsyncStub = rpc.TableServiceStub(self._chance.choice(self._channels))
        return stub

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._token()}"),)


class Page:
    """The record of one stream."""

    def __init__(self, book: Book, seen: Seen) -> None:
        self.is_over = False
        self.reached = seen.after
        self._book = book
        self._seen = seen

    def play(self, raw: bytes) -> None:
        """Note a frame of a Play stream."""
        response = pb.PlayResponse.FromString(raw)
        if response.HasField("answer"):
            answer = response.answer
            if not answer.fault:
                self._book.heard(str(self._seen.table_id), self._seen.player, answer.command_id, answer.outcome)
        else:
            self.watch(response)

    def watch(self, frame: pb.PlayResponse | pb.WatchResponse) -> None:
        """Note a frame that is no answer."""
        match frame.WhichOneof("response"):
            case "snapshot":
                self._view(Kind.SNAPSHOT, frame.snapshot.view)
            case "update":
                self._update(frame.update)
            case _:
                self._mark(Mark(Kind.BEAT, frame.heartbeat.version))

    def _update(self, update: pb.Update) -> None:
        for versioned in update.events:
            self._mark(Mark(Kind.EVENT, versioned.version, digest_of(versioned)))
        if update.HasField("view"):
            self._view(Kind.VIEW, update.view)

    def _view(self, kind: Kind, view: view_pb2.View) -> None:
        self._seen.audience = f"seat{view.private.seat}" if view.HasField("private") else PUBLIC
        self.is_over = view.public.phase in {view_pb2.TABLE_PHASE_FINISHED, view_pb2.TABLE_PHASE_CLOSED}
        self._mark(Mark(kind, view.version, b"" if view.version % EVERY else view_digest(view)))

    def _mark(self, mark: Mark) -> None:
        self._seen.marks.append(mark)
        self.reached = mark.version


class Pondering:
    """A player's line, with a while to think before each action, and sometimes far too long a one."""

    def __init__(self, line: PlayStream, chance: random.Random, *, think_s: float, dawdling: float) -> None:
        self._line = line
        self._chance = chance
        self._think_s = think_s
        self._dawdling = dawdling

    async def ready(self, command_id: str, contribution: str) -> None:
        """Say that the player wants the next deal."""
        await self._line.ready(command_id, contribution)

    async def act(self, command_id: str, seen_version: int, choice: Choice) -> None:
        """Send an action, after a while."""
        is_dawdling = self._chance.random() < self._dawdling
        await asyncio.sleep(DAWDLE_S if is_dawdling else self._chance.uniform(0, self._think_s))
        await self._line.act(command_id, seen_version, choice)

    async def receive(self) -> Received | None:
        """The next frame."""
        return await self._line.receive()

    def close(self) -> None:
        """Let the stream go."""
        self._line.close()


def _answer(command_id: str, outcome: pb.Outcome) -> Answer:
    if outcome.WhichOneof("outcome") == "accepted":
        return Answer(command_id, accepted_at=outcome.accepted.version)
    return Answer(command_id, refused=str(outcome.refused.reason))
