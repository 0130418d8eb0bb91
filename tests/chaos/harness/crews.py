"""Who plays: crews of six who open tables of their own, and six times as many who queue for theirs.

Law: ordinary players, again and again until they are told that it is late; then each finishes his match. What the house
tells them that no player has earned is noted.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TypeVar

import grpc

from engine.runtime.uuid7 import uuid7
from services.bots.faults import Stop, TryAgain
from services.bots.matchmaking_client import MatchmakingClient
from services.bots.pauses import growing
from services.bots.player import play_match
from services.bots.queue import find_table
from tests.chaos.harness.clients import DAWDLING, THINK_S, Book, Guest, dial
from tests.chaos.harness.evidence import TurnedAway
from tests.chaos.harness.site import TABLES, Site

VARIANTS = ("qingdao-charter", "shandong", "jinan", "qingdao-full")
DEALS = 1
SEATS = 6
AGAIN_S = 0.5
COMES_BACK = frozenset({"SUPERSEDED", "ROLE_CHANGED"})
"""What a client is told when an older stream of his own is taken for the newer one; a person would come back."""

Value = TypeVar("Value")


class Club:
    """All players, who never think when they are `hasty`.

    `late` is set when no new match shall begin; `waiting` counts who is in the queue.
    """

    def __init__(self, site: Site, seed: int, *, hasty: bool = False) -> None:
        self.book = Book()
        self.late = asyncio.Event()
        self.waiting = 0
        self.bothers: Counter[str] = Counter()
        self._site = site
        self._hasty = hasty
        self._chance = random.Random(seed)
        self._channels = AsyncExitStack()
        self._crews: list[asyncio.Task[None]] = []
        self._running: list[asyncio.Task[None]] = []

    def come(self, tables: int) -> None:
        """Let players for so many tables in: half of them open theirs, the others queue."""
        for number in range(tables):
            channels = [self._dial(service) for service in TABLES]
            names = [f"c{number}-p{seat}" for seat in range(SEATS)]
            guests = [self._guest(name, channels) for name in names]
            if number % 2 == 0:
                self._crews.append(asyncio.create_task(self._crew(guests, self._guest(f"c{number}-w", channels))))
                self._running.append(self._crews[-1])
            else:
                office = self._dial("matchmaking")
                self._running.extend(asyncio.create_task(self._regular(guest, office)) for guest in guests)

    def desert(self) -> None:
        """Half of the crews with tables of their own leave them for ever, in the middle of whatever they do."""
        for crew in self._crews[::2]:
            crew.cancel()

    async def finish(self, within_s: float) -> None:
        """Wait until all who play have finished; whoever is still at it then is sent home."""
        await asyncio.wait(self._running, timeout=within_s, return_when=asyncio.ALL_COMPLETED)

    async def leave(self) -> None:
        """Send everybody home. Raises what broke a player, for that is a fault of the harness."""
        for task in self._running:
            task.cancel()
        ends = await asyncio.gather(*self._running, return_exceptions=True)
        await self._channels.aclose()
        for end in ends:
            if isinstance(end, Exception):
                raise end

    @property
    def playing(self) -> int:
        """How many tasks of players are under way."""
        return sum(not task.done() for task in self._running)

    def _dial(self, service: str) -> grpc.aio.Channel:
        channel = dial(self._site.address(service))
        self._channels.push_async_callback(channel.close)
        return channel

    def _guest(self, name: str, channels: Sequence[grpc.aio.Channel]) -> Guest:
        chance = random.Random(self._chance.random())
        think_s, dawdling = (0.0, 0.0) if self._hasty else (THINK_S, DAWDLING)
        return Guest(name, channels, self._site.token, self.book, chance, think_s=think_s, dawdling=dawdling)

    async def _crew(self, guests: Sequence[Guest], watcher: Guest) -> None:
        """Six who open a table, sit down and play, and one who watches, again and again."""
        for variant in self._evening():
            opening = str(uuid7())
            table_id = await self._patiently(lambda: guests[0].open_table(opening, variant, DEALS))  # noqa: B023 - at once
            watching = asyncio.create_task(self._watch(watcher, table_id))
            await asyncio.gather(*(self._play(guest, table_id, seat) for seat, guest in enumerate(guests)))
            await asyncio.wait([watching], timeout=5)
            watching.cancel()

    async def _regular(self, guest: Guest, office: grpc.aio.Channel) -> None:
        """One who queues, and plays where he is seated."""
        client = MatchmakingClient(office, lambda: self._site.token(guest.name))
        for _ in self._evening():
            self.waiting += 1
            table_id = await self._queue(client)
            self.waiting -= 1
            await self._play(guest, table_id, None)

    def _evening(self) -> Iterator[str]:
        while not self.late.is_set():
            yield self._chance.choice(VARIANTS)

    async def _queue(self, client: MatchmakingClient) -> str:
        while True:
            try:
                return (await find_table(client, VARIANTS[0], DEALS)).table_id
            except Stop as stop:
                self.bothers[f"queue {stop.reason}"] += 1
                await asyncio.sleep(AGAIN_S)

    async def _play(self, guest: Guest, table_id: str, seat: int | None) -> None:
        """Play a match to its end."""
        pauses = growing()
        while True:
            try:
                await play_match(guest, table_id, seat, seed=self._chance.randrange(1 << 30))
            except Stop as stop:
                self.bothers[f"play {stop.reason}"] += 1
                if stop.reason in COMES_BACK:
                    await asyncio.sleep(next(pauses))
                    continue
                self.book.turned_away.append(TurnedAway(guest.name, None, f"{stop.reason} at {table_id}"))
            return

    async def _watch(self, watcher: Guest, table_id: str) -> None:
        with suppress(Stop):
            await watcher.watch(table_id)

    async def _patiently(self, ask: Callable[[], Awaitable[Value]]) -> Value:
        for pause in growing():
            try:
                return await ask()
            except TryAgain:
                await asyncio.sleep(pause)
        raise AssertionError
