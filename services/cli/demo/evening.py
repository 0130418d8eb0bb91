"""An evening of six players: they sign in, queue, play a match, look at their ratings and take the deals home.

Law: everything over gRPC, as any client does it; the operator's witness is heard beside it. Nothing is judged here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

import grpc

from engine.runtime import subjects
from engine.runtime.bus import BusUnavailable, Message
from engine.runtime.bus_nats import NatsBus, NatsOptions
from services.bots.faults import Stop
from services.bots.matchmaking_client import MatchmakingClient, Ticket
from services.bots.player import play_match
from services.bots.queue import find_table
from services.bots.sight import Sight
from services.bots.table_client import TableClient
from services.cli.demo.deals_client import exported_deal
from services.cli.demo.ranking_client import Rating, rating_of

PLAYERS = ("ada", "bao", "chen", "dong", "emil", "fang")
VARIANT = "qingdao-charter"
DEALS = 2
RATED_S = 30.0
QUEUE_S = 30.0
PLAY_S = 120.0
ASK_AGAIN_S = 0.1

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Places:
    """Where the services are, and how to sign in: tokens by player, the operator's bus."""

    addresses: Mapping[str, str]
    tokens: Mapping[str, str]
    bus: str


@dataclass(frozen=True, slots=True)
class Evening:
    """What came of it. `witnessed`: the live engine's state hash by version; `updates`: frames that players received."""

    table_id: str
    seats: Mapping[str, int]
    points: tuple[int, ...]
    ratings: Mapping[str, Rating]
    deals: tuple[str, ...]
    witnessed: Mapping[int, str]
    updates: int


class Witnessed:
    """The engine's fingerprints, as they are told."""

    def __init__(self, progress: Progress) -> None:
        self.hashes: dict[int, str] = {}
        self._progress = progress

    async def hear(self, message: Message) -> None:
        """Keep a fingerprint."""
        version, state_hash = message.payload.decode().split()
        self.hashes[int(version)] = state_hash
        self._progress(f"playing: {version} events")


class Party:
    """Six players and their channels."""

    def __init__(self, places: Places, channels: Mapping[str, grpc.aio.Channel]) -> None:
        self._places = places
        self._channels = channels
        self.updates = 0

    async def queue(self) -> dict[str, Ticket]:
        """Queue all six and tell where each was seated."""
        async with asyncio.timeout(QUEUE_S):
            return dict(zip(PLAYERS, await asyncio.gather(*map(self._queue, PLAYERS)), strict=True))

    async def play(self, table_id: str) -> tuple[int, ...]:
        """Play the match to its end; the points by seat."""
        async with asyncio.timeout(PLAY_S):
            sights = await asyncio.gather(*(self._play(player, table_id) for player in PLAYERS))
        return sights[0].points

    async def ratings(self) -> dict[str, Rating]:
        """Wait until the match counts for everybody."""
        async with asyncio.timeout(RATED_S):
            return dict(zip(PLAYERS, await asyncio.gather(*map(self._rating, PLAYERS)), strict=True))

    async def deals(self, table_id: str) -> tuple[str, ...]:
        """Every deal of the match in the notation."""
        channel, token = self._channels["table"], self._places.tokens[PLAYERS[0]]
        return tuple([await exported_deal(channel, token, table_id, deal) for deal in range(1, DEALS + 1)])

    async def _queue(self, player: str) -> Ticket:
        office = MatchmakingClient(self._channels["matchmaking"], self._token_of(player))
        return await find_table(office, VARIANT, DEALS)

    async def _play(self, player: str, table_id: str) -> Sight:
        return await play_match(self._table(player), table_id)

    def _token_of(self, player: str) -> Callable[[], str]:
        return partial(self._places.tokens.__getitem__, player)

    def _table(self, player: str) -> TableClient:
        return TableClient(self._channels["table"], self._token_of(player), self._count)

    def _count(self, _: bytes) -> None:
        self.updates += 1

    async def _rating(self, player: str) -> Rating:
        while True:
            rating = await rating_of(self._channels["ranking"], self._places.tokens[player], player)
            if rating is not None and rating.deals >= DEALS:
                return rating
            await asyncio.sleep(ASK_AGAIN_S)


class Spoiled(Exception):
    """The evening did not come to its end: read the services' logs."""


async def spend(places: Places, progress: Progress) -> Evening:
    """Spend the evening. Raises `Spoiled`."""
    try:
        return await _spend_at(places, progress)
    except TimeoutError as failure:
        raise Spoiled("it took too long") from failure
    except (Stop, BusUnavailable, grpc.aio.AioRpcError) as failure:
        raise Spoiled(str(failure)) from failure


async def _spend_at(places: Places, progress: Progress) -> Evening:
    async with AsyncExitStack() as open_things:
        channels = {name: grpc.aio.insecure_channel(address) for name, address in places.addresses.items()}
        for channel in channels.values():
            open_things.push_async_callback(channel.close)
        bus = await NatsBus.connect(NatsOptions((places.bus,), name="demo"))
        open_things.push_async_callback(bus.close)
        return await _spend(Party(places, channels), bus, progress)


async def _spend(party: Party, bus: NatsBus, progress: Progress) -> Evening:
    witnessed = Witnessed(progress)
    await bus.subscribe(subjects.WITNESSES, witnessed.hear)
    progress("six players queue")
    seats = await party.queue()
    table_id = seats[PLAYERS[0]].table_id
    points = await party.play(table_id)
    progress("waiting for ratings")
    ratings = await party.ratings()
    return Evening(
        table_id=table_id,
        seats={player: seat.seat for player, seat in seats.items()},
        points=points,
        ratings=ratings,
        deals=await party.deals(table_id),
        witnessed=witnessed.hashes,
        updates=party.updates,
    )
