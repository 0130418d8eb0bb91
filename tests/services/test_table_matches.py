from __future__ import annotations

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from gouji.game.v1 import action_pb2, event_pb2, variant_pb2, view_pb2
from gouji.table.v1 import table_pb2 as pb
from gouji.table.v1 import table_pb2_grpc as rpc

from engine.runtime.bus import Bus
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.faults import Unavailable
from engine.runtime.uuid7 import uuid7
from engine.service.waits import Spans
from engine.store.memory import MemoryEventStore
from services.bots.player import play_match
from services.bots.sight import Sight
from services.bots.table_client import TableClient
from services.table.engine_client import Patience
from tests.support.engine_bench import PLAYERS, start
from tests.support.table_server import TableServer, table_server, token

SPANS = Spans(turn_ms=60_000, window_ms=60_000, between_ms=60_000, gathering_ms=600_000)


@dataclass
class House:
    """An engine and three replicas of the table service."""

    replicas: Sequence[TableServer]
    frames: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))

    @asynccontextmanager
    async def stub(self, player: str, replica: int = 0) -> AsyncIterator[rpc.TableServiceAsyncStub]:
        async with self.replicas[replica].channel(player) as channel:
            yield rpc.TableServiceStub(channel)

    async def opened(self, variant: str = "qingdao-charter", deals: int = 1, switches: Sequence[str] = ()) -> str:
        opening = pb.OpenTableRequest(
            command_id=str(uuid7()),
            variant_key=variant,
            deals=deals,
            switches=switches,
            seating=variant_pb2.SEATING_CHOSEN_TEAMS,
        )
        async with self.stub("opener") as opener:
            return (await opener.OpenTable(opening)).table_id

    async def played(self, table_id: str) -> list[Sight]:
        """Six house players, two on each replica, play the match to its end."""
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            playing = []
            for seat, player in enumerate(PLAYERS):
                channel = grpc.aio.insecure_channel(self.replicas[seat % 3].target)
                stack.push_async_callback(channel.close)
                client = TableClient(channel, partial(token, player), self.frames[player].append)
                playing.append(group.create_task(play_match(client, table_id, seat, seed=seat)))
        return [task.result() for task in playing]


@pytest.fixture(params=["memory", "nats"])
def url(request: pytest.FixtureRequest) -> str:
    """Where NATS is; empty for the bus within the process."""
    return str(request.getfixturevalue("nats_url")) if request.param == "nats" else ""


@pytest.fixture
async def house(url: str) -> AsyncIterator[House]:
    broker = Broker()

    async with AsyncExitStack() as stack:

        async def bus() -> Bus:
            one: Bus = await NatsBus.connect(NatsOptions((url,))) if url else MemoryBus(broker)
            stack.push_async_callback(one.close)
            return one

        engine = await start(MemoryEventStore(), await bus(), spans=SPANS)
        stack.push_async_callback(engine.stop)
        replicas = [await stack.enter_async_context(table_server(await bus(), patience=Patience())) for _ in range(3)]
        yield House(replicas)


async def test_six_house_players_on_three_replicas_play_a_match_to_its_end(house: House) -> None:
    table_id = await house.opened(deals=2)

    async with asyncio.timeout(100):
        ends = await house.played(table_id)

    assert {end.phase for end in ends} == {"FINISHED"}
    assert len({end.points for end in ends}) == 1
    assert {end.deal for end in ends} == {2}
    for frames in house.frames.values():
        responses = [pb.PlayResponse.FromString(frame) for frame in frames]
        answers = [response.answer.outcome for response in responses if response.HasField("answer")]
        told = [version_told(response) for response in responses if not response.HasField("answer")]
        assert told == sorted(told)
        assert told[0] > 0
        assert all(answer.accepted.version or answer.refused.version for answer in answers)


def version_told(response: pb.PlayResponse) -> int:
    """The version that an update, a snapshot or a heartbeat tells, alike in its events and in its view."""
    if response.HasField("heartbeat"):
        return response.heartbeat.version
    view = (response.snapshot if response.HasField("snapshot") else response.update).view
    versions = [event.version for event in response.update.events]
    assert not versions or not view.version or versions[-1] == view.version
    return view.version or versions[-1]


async def test_a_match_goes_on_while_streams_break_all_the_time(house: House) -> None:
    table_id = await house.opened()
    chance = random.Random(7)

    async def break_streams() -> None:
        while True:
            await asyncio.sleep(0.05)
            streams = [stream for replica in house.replicas for stream in replica.watchers.streams]
            if streams:
                chance.choice(streams).end(Unavailable("A test breaks this."))

    breaking = asyncio.create_task(break_streams())
    async with asyncio.timeout(100):
        ends = await house.played(table_id)
    breaking.cancel()

    assert {end.phase for end in ends} == {"FINISHED"}
    for player, frames in house.frames.items():
        assert versions(frames) == list(range(1, versions(frames)[-1] + 1)), player


def versions(frames: Sequence[bytes]) -> list[int]:
    """Every version that a player was brought to, first by a snapshot and then event by event."""
    found: list[int] = []
    for response in map(pb.PlayResponse.FromString, frames):
        if response.HasField("snapshot"):
            found = list(range(1, response.snapshot.view.version + 1))
        found.extend(event.version for event in response.update.events)
    return found


async def test_seven_players_who_sit_down_at_once_get_six_seats(house: House) -> None:
    table_id = await house.opened()
    players = (*PLAYERS, "gregor")

    async def sits(number: int) -> str:
        async with house.stub(players[number], number % 3) as stub:
            wanted = [(number + step) % 6 for step in range(6)]
            for seat in wanted:
                request = pb.TakeSeatRequest(table_id=table_id, command_id=str(uuid4()), seat=seat)
                outcome = (await stub.TakeSeat(request)).outcome
                again = (await stub.TakeSeat(request)).outcome
                if outcome.HasField("accepted"):
                    assert again == outcome
                    return "seated"
                assert outcome.refused.reason == action_pb2.REASON_SEAT_TAKEN
            return "full"

    async with asyncio.timeout(20):
        outcomes = await asyncio.gather(*map(sits, range(7)))
    async with house.stub("zoe") as zoe:
        view = (await zoe.GetView(pb.GetViewRequest(table_id=table_id))).view

    assert sorted(outcomes) == ["full"] + ["seated"] * 6
    assert len({seat.player_id for seat in view.public.seats} - {""}) == 6


async def test_six_players_who_want_six_seats_at_once_all_get_theirs(house: House) -> None:
    table_id = await house.opened()

    async def sits(seat: int) -> pb.Outcome:
        async with house.stub(PLAYERS[seat], seat % 3) as stub:
            request = pb.TakeSeatRequest(table_id=table_id, command_id=str(uuid4()), seat=seat)
            return (await stub.TakeSeat(request)).outcome

    outcomes = await asyncio.gather(*map(sits, range(6)))

    assert all(outcome.HasField("accepted") for outcome in outcomes)


async def test_who_comes_back_at_any_version_has_exactly_what_was_missed(house: House) -> None:
    table_id = await house.opened()
    async with asyncio.timeout(100):
        await house.played(table_id)
    async with house.stub("zoe", 1) as zoe, house.stub(PLAYERS[2], 2) as chen:
        for stub in (zoe, chen):
            last = (await stub.GetView(pb.GetViewRequest(table_id=table_id))).view.version
            everything = await tail(stub, table_id, 1, last)
            assert [event.version for event in everything] == list(range(2, last + 1))
            for after in (*range(2, last - 1, 40), last - 1):
                assert await tail(stub, table_id, after, last) == everything[after - 1 :]


async def tail(stub: rpc.TableServiceAsyncStub, table_id: str, after: int, last: int) -> list[pb.VersionedEvent]:
    """The events that a watcher gets who has seen everything up to a version."""
    events: list[pb.VersionedEvent] = []
    call = stub.Watch(pb.WatchRequest(table_id=table_id, after_version=after))
    async for response in call:
        events.extend(response.update.events)
        if events and events[-1].version == last:
            break
    call.cancel()
    return events


CARDS = re.compile(r"(?:[3-9TJQKA2][SHDC]|[sb]){2,}")
REPORTED = 12
"""Below so many cards a hand may by chance be a set that lay on the table."""

PUBLIC_FACTS = {"set_laid", "bought", "ranks_discarded", "deal_revealed", "deal_voided"}


@pytest.mark.parametrize("url", ["memory"], indirect=True)
@pytest.mark.parametrize("variant", ["qingdao-charter", "shandong", "qingdao-full"])
async def test_no_byte_sent_to_a_seat_holds_a_card_it_may_not_know(house: House, variant: str) -> None:
    table_id = await house.opened(variant, deals=2, switches=["advice=off"])
    async with asyncio.timeout(100):
        await house.played(table_id)

    hands = [dict(held(house.frames[player])) for player in PLAYERS]
    assert all(len(of_seat) > 50 for of_seat in hands)
    for seat, player in enumerate(PLAYERS):
        for raw in house.frames[player]:
            response = pb.PlayResponse.FromString(raw)
            assert list(told_in_events(response.update, seat)) == []
            view = response.snapshot.view if response.HasField("snapshot") else response.update.view
            if is_running(view):
                assert list(told_in_view(view, seat)) == []
                others = (of_seat.get(view.version, "") for other, of_seat in enumerate(hands) if other != seat)
                assert not any(hand.encode() in raw for hand in others if len(hand) > 2 * REPORTED)


def is_running(view: view_pb2.View) -> bool:
    over = (event_pb2.DEAL_PHASE_OVER, event_pb2.DEAL_PHASE_VOID)
    return view.public.phase == view_pb2.TABLE_PHASE_PLAYING and view.public.deal_phase not in over


def held(frames: Sequence[bytes]) -> Iterator[tuple[int, str]]:
    """The hand that a player was shown at each version."""
    for response in map(pb.PlayResponse.FromString, frames):
        view = response.snapshot.view if response.HasField("snapshot") else response.update.view
        yield view.version, view.private.hand


def told_in_view(view: view_pb2.View, seat: int) -> Iterator[str]:
    """Where a running deal's view for a seat tells cards that are neither its own nor on the table."""
    own = {"private.hand", "private.options.hints", "public.table.cards"}
    yield from (path for path, text in texts(view) if CARDS.fullmatch(text) and path not in own)
    if view.private.seat != seat:
        yield "private.seat"


def told_in_events(update: pb.Update, seat: int) -> Iterator[str]:
    """Which facts tell a seat cards that only others may know."""
    for versioned in update.events:
        name = versioned.event.WhichOneof("fact") or ""
        if not name or name in PUBLIC_FACTS:
            continue
        fact = getattr(versioned.event, name)
        if not concerns(fact, name, seat):
            yield from (f"{name}.{path}" for path, text in texts(fact) if CARDS.fullmatch(text))


def concerns(fact: Any, name: str, seat: int) -> bool:
    """Whether the cards of this fact are the seat's own."""
    match name:
        case "cards_dealt":
            return [hand.HasField("cards") for hand in fact.hands] == [other == seat for other in range(6)]
        case "answered":
            return bool(fact.seat == seat)
        case "tribute_paid":
            return seat in (fact.payer, fact.payee)
        case "tribute_returned":
            return seat in (fact.seat, fact.payer)
    return False


def texts(message: Message, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a message with the names that lead to it."""
    for descriptor, value in message.ListFields():
        name = f"{path}.{descriptor.name}" if path else descriptor.name
        for one in value if descriptor.is_repeated else [value]:
            if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
                yield from texts(one, name)
            elif descriptor.type == FieldDescriptor.TYPE_STRING:
                yield name, one
