"""Players who think until they are let through, so that a table rests in the very wait that a test is about.

Law: ordinary clients in everything else. A gate is one table's; who passes it is decided by the test alone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from uuid import UUID

import grpc

from engine.runtime.uuid7 import uuid7
from services.bots.player import Line, play_match
from services.bots.sight import Choice, Received
from tests.chaos.harness.clients import Book, Guest, Token
from tests.support.engine_bench import eventually

SEATS = 6


class Gate:
    """Where the players of a table wait with what they are about to do; `waiting` counts them."""

    def __init__(self) -> None:
        self.waiting = 0
        self._open = asyncio.Event()

    async def passed(self) -> None:
        """Wait to be let through."""
        self.waiting += 1
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1

    async def let_through(self) -> None:
        """Those who wait may go on, and have when this returns; whoever comes after them waits."""
        self._open.set()
        self._open.clear()
        while self.waiting:  # noqa: ASYNC110 - each leaves at the loop's next turn
            await asyncio.sleep(0)

    def open(self) -> None:
        """Hold nobody up any more."""
        self._open.set()


class Thinker(Guest):
    """A player who passes a gate before everything that he sends."""

    def __init__(self, name: str, channels: Sequence[grpc.aio.Channel], token: Token, book: Book, gate: Gate) -> None:
        super().__init__(name, channels, token, book, random.Random(name), dawdling=0.0)
        self._gate = gate

    async def play(self, table_id: str, after_version: int) -> Line:
        """Open a stream after a version. Raises `Stop`, `TryAgain`."""
        return _Thinking(await super().play(table_id, after_version), self._gate)


class _Thinking:
    """A line that leads through a gate."""

    def __init__(self, line: Line, gate: Gate) -> None:
        self._line = line
        self._gate = gate

    async def ready(self, command_id: str, contribution: str) -> None:
        await self._gate.passed()
        await self._line.ready(command_id, contribution)

    async def act(self, command_id: str, seen_version: int, choice: Choice) -> None:
        await self._gate.passed()
        await self._line.act(command_id, seen_version, choice)

    async def receive(self) -> Received | None:
        return await self._line.receive()

    def close(self) -> None:
        self._line.close()


class Party:
    """Six at a table of their own, and one who watches. Nobody is ready before the gate lets him through."""

    def __init__(self, name: str, channels: Sequence[grpc.aio.Channel], token: Token, book: Book) -> None:
        self.gate = Gate()
        self.name = name
        self.table_id = UUID(int=0)
        self._book = book
        self._guests = [Thinker(f"{name}-p{seat}", channels, token, book, self.gate) for seat in range(SEATS)]
        self._watcher = Thinker(f"{name}-w", channels, token, book, self.gate)
        self._running: list[asyncio.Task[object]] = []

    async def sit(self, variant: str, deals: int) -> None:
        """Open a table and sit down. Raises `Stop`, `TryAgain`."""
        table_id = await self._guests[0].open_table(str(uuid7()), variant, deals)
        self.table_id = UUID(table_id)
        self._running = [
            asyncio.create_task(play_match(guest, table_id, seat, seed=seat)) for seat, guest in enumerate(self._guests)
        ]
        self._running.append(asyncio.create_task(self._watcher.watch(table_id)))

    async def wait_for(self, players: int, within_s: float) -> None:
        """Wait until so many are about to send something. Raises `TimeoutError`."""

        async def are_waiting() -> bool:
            return self.gate.waiting == players

        await eventually(are_waiting, within_s)

    async def go_on(self, moves: int, within_s: float) -> None:
        """Wait until so many more commands were accepted. Raises `TimeoutError`."""
        enough = self._book.accepted(self.table_id) + moves

        async def have_moved() -> bool:
            return self._book.accepted(self.table_id) >= enough

        await eventually(have_moved, within_s)

    async def finish(self, within_s: float) -> None:
        """Wait until the match is over. Raises `TimeoutError`, and what broke a player."""
        async with asyncio.timeout(within_s):
            await asyncio.gather(*self._running)

    async def leave(self) -> None:
        """Go home. Raises what broke a player."""
        for task in self._running:
            task.cancel()
        for end in await asyncio.gather(*self._running, return_exceptions=True):
            if isinstance(end, Exception):
                raise end
