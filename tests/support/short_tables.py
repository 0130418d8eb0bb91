"""Short tables: each is opened, taken, watched or played, and ended, each kind in another way.

Law: ordinary calls of players on their own devices; only what the house does goes to the engine directly. Every table
ends, and whoever plays it waits for nothing but answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from uuid import UUID, uuid4

import grpc
from gouji.engine.v1 import engine_pb2
from gouji.game.v1 import action_pb2, variant_pb2, view_pb2
from gouji.table.v1 import table_pb2 as pb

from engine.runtime.uuid7 import uuid7
from tests.support.crowded_house import PEOPLE, House, Stub, device
from tests.support.engine_bench import Callers, chosen
from tests.support.proxy import FaultyProxy

_FOR_TWELVE_KINGS = "{3:16,4:16,5:16,6:16,7:16,8:16,9:16,T:16,J:16,Q:16,K:4,A:16,2:16,s:4,b:4}"

Watch = grpc.aio.UnaryStreamCall[pb.WatchRequest, pb.WatchResponse]
Play = grpc.aio.StreamStreamCall[pb.PlayRequest, pb.PlayResponse]


async def table_of_each_kind(at: House, number: int) -> None:
    """Play a table; `number` says who sits there and how it ends."""
    await _KINDS[number % KINDS](_Six(at, number))


async def mostly_short_table(at: House, number: int) -> None:
    """Play a table: of a hundred, one is played to the end, ten are dealt, four forgotten, and the others never fill."""
    await _of_a_hundred(number)(_Six(at, number))


async def forgotten_table(at: House, number: int) -> None:
    """Somebody opens a table, sits there for a moment and never comes back: only time ends it."""
    await _forgotten(_Six(at, number))


async def engine_table(at: House, number: int) -> None:
    """Open a table for six, have it dealt and closed, without a table service; every other one is never dealt."""
    callers = Callers(at.bus)
    await callers.open_with_six()
    if number % 2:
        await callers.all_ready()
    await _closed(callers)


async def _closed(callers: Callers) -> None:
    house_ = engine_pb2.House(kind=engine_pb2.House.KIND_CLOSE, reason="enough")
    _accepted((await callers.send("admin", house=house_)).outcome)


class _Six:
    """Six players at a table of theirs, and their devices."""

    def __init__(self, at: House, number: int) -> None:
        self.at = at
        self.number = number
        self.who = [at.tokens[(number * 6 + seat) % PEOPLE] for seat in range(6)]
        self.devices = at.crews[number % len(at.crews)]
        self.table_id = ""

    async def open(self, *switches: str) -> None:
        opening = pb.OpenTableRequest(
            command_id=str(uuid7()),
            variant_key="qingdao-charter",
            switches=switches,
            deals=1,
            seating=variant_pb2.SEATING_CHOSEN_TEAMS,
        )
        opened = await self.devices[0].OpenTable(opening, metadata=self.who[0])
        self.table_id = opened.table_id

    async def sit(self, seats: Iterable[int]) -> None:
        for seat in seats:
            request = pb.TakeSeatRequest(table_id=self.table_id, command_id=str(uuid4()), seat=seat)
            _accepted((await self.devices[seat].TakeSeat(request, metadata=self.who[seat])).outcome)

    async def ready(self) -> None:
        for device_, who in zip(self.devices, self.who, strict=True):
            request = pb.SetReadyRequest(table_id=self.table_id, command_id=str(uuid4()), ready=True)
            _accepted((await device_.SetReady(request, metadata=who)).outcome)

    @asynccontextmanager
    async def watching(self, seats: Iterable[int]) -> AsyncIterator[list[Watch]]:
        """Watch streams of these players, who have each seen the table; they are cancelled at the end."""
        request = pb.WatchRequest(table_id=self.table_id)
        calls: list[Watch] = [self.devices[seat].Watch(request, metadata=self.who[seat]) for seat in seats]
        try:
            for call in calls:
                await call.read()
            yield calls
        finally:
            for call in calls:
                call.cancel()

    @asynccontextmanager
    async def playing(self, devices: Iterable[Stub] = ()) -> AsyncIterator[list[Play]]:
        """Each player's Play stream, begun; they are cancelled at the end, if they have not ended yet."""
        stubs = tuple(devices) or self.devices
        calls: list[Play] = [stub.Play(metadata=who) for stub, who in zip(stubs, self.who, strict=True)]
        try:
            for call in calls:
                await call.write(pb.PlayRequest(join=pb.Join(table_id=self.table_id)))
                await call.read()
            yield calls
        finally:
            for call in calls:
                call.cancel()

    async def stay(self, calls: list[Play]) -> None:
        """Nobody revolts: each answers on his stream, and reads until his answer is there."""
        for call in calls:
            action = action_pb2.Action(kind=action_pb2.ACTION_KIND_STAY)
            await call.write(pb.PlayRequest(move=pb.Move(command_id=str(uuid4()), action=action)))
            while not _is_answer(await call.read()):
                pass

    async def act(self) -> None:
        """Whoever may act does so once, by a call of its own."""
        for device_, who in zip(self.devices, self.who, strict=True):
            view = (await device_.GetView(pb.GetViewRequest(table_id=self.table_id), metadata=who)).view
            if action := chosen(view.private):
                request = pb.ActRequest(table_id=self.table_id, command_id=str(uuid4()), action=action)
                _accepted((await device_.Act(request, metadata=who)).outcome)
                return

    async def close(self) -> None:
        await _closed(Callers(self.at.bus, UUID(self.table_id)))


def _is_answer(read: object) -> bool:
    assert isinstance(read, pb.PlayResponse), read
    return read.HasField("answer")


def _is_closed(read: object) -> bool:
    assert isinstance(read, pb.WatchResponse), read
    return read.update.view.public.phase == view_pb2.TABLE_PHASE_CLOSED


def _accepted(outcome: pb.Outcome) -> None:
    assert outcome.HasField("accepted"), outcome


async def _read_to_the_end(calls: list[Play]) -> None:
    for call in calls:
        while await call.read() is not grpc.aio.EOF:
            pass


async def _closed_in_the_deal(six: _Six) -> None:
    """Six play for a while on their streams, the house closes the table, and they go without a word."""
    await six.open()
    await six.sit(range(6))
    async with six.playing() as calls:
        await six.ready()
        await six.stay(calls)
        await six.act()
        await six.act()
        await six.close()


async def _left_politely(six: _Six) -> None:
    """As before, but all say goodbye while the deal runs, and read to the end."""
    await six.open()
    await six.sit(range(6))
    async with six.playing() as calls:
        await six.ready()
        await six.stay(calls)
        for call in calls:
            await call.done_writing()
        await _read_to_the_end(calls)
    await six.close()


async def _never_full(six: _Six) -> None:
    """One sits down, or three, one of them twice on a stream; somebody watches; all see the house close the table."""
    are_three = six.number % 3 == 0
    await six.open()
    await six.sit(range(3) if are_three else (0,))
    async with six.watching((0, 0, 5) if are_three else (0, 5)) as calls:
        await six.close()
        for call in calls:
            while not _is_closed(await call.read()):
                pass


async def _forgotten(six: _Six) -> None:
    await six.open()
    await six.sit((0,))
    async with six.watching((0,)):
        pass


async def _connection_lost(six: _Six) -> None:
    """The one connection of all six is cut while they play."""
    await six.open()
    await six.sit(range(6))
    async with (
        FaultyProxy(six.at.server.server.port) as proxy,
        device(f"127.0.0.1:{proxy.port}") as shared,
        six.playing([shared] * 6) as calls,
    ):
        await six.ready()
        await six.stay(calls)
        proxy.refuse()
        for call in calls:
            with suppress(grpc.aio.AioRpcError):
                await _read_to_the_end([call])
    await six.close()


async def _played_to_the_end(six: _Six) -> None:
    """Twelve kings are played out, watched by all; an unknown table is asked for, and a seat taken twice."""
    await six.open(f"deck={_FOR_TWELVE_KINGS}", "revolution=no")
    await six.sit(range(6))
    async with six.playing():
        await six.ready()
        await Callers(six.at.bus, UUID(six.table_id)).play()
    for table_id in (str(uuid7()), six.table_id):
        with suppress(grpc.aio.AioRpcError):
            request = pb.TakeSeatRequest(table_id=table_id, command_id=str(uuid4()))
            await six.devices[0].TakeSeat(request, metadata=six.who[0])


_BROKEN_OFF = (_closed_in_the_deal, _left_politely, _connection_lost)
_KINDS: tuple[Callable[[_Six], Awaitable[None]], ...] = (*_BROKEN_OFF, _never_full, _played_to_the_end)
KINDS = len(_KINDS)


def _of_a_hundred(number: int) -> Callable[[_Six], Awaitable[None]]:
    if number % 100 == 99:
        return _played_to_the_end
    if number % 10 == 4:
        return _BROKEN_OFF[number // 10 % len(_BROKEN_OFF)]
    return _forgotten if number % 25 == 2 else _never_full
