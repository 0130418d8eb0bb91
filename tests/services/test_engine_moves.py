"""The complete list of a seat's moves, asked for over the bus."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import action_pb2, view_pb2
from gouji.table.v1 import table_pb2

from engine import match as table
from engine.rules.commands import Swap
from engine.rules.options import ActionKind
from engine.rules.variant import resolve
from engine.runtime import subjects
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.service import wire
from engine.store.memory import MemoryEventStore
from engine.store.port import shard_of
from tests.support.engine_bench import PLAYERS, Callers, accepted, start
from tests.support.players import play_out
from tests.support.tables import TABLE_ID, LoggedTable

LAY, SUGGEST, ORDER = action_pb2.ACTION_KIND_LAY, action_pb2.ACTION_KIND_SUGGEST, action_pb2.ACTION_KIND_ORDER
SHORT = {"deck": "{5:16,6:16,7:16,8:16,9:16,T:16}", "swap_last": "yes"}


@pytest.fixture
async def callers() -> AsyncIterator[Callers]:
    broker = Broker()
    replica = await start(MemoryEventStore(), MemoryBus(broker))
    yield Callers(MemoryBus(broker))
    await replica.stop()


async def asked(callers: Callers, player: str, **changed: str) -> engine.MovesReply:
    request = engine.MovesRequest(**{"table_id": str(callers.table_id), "player_id": player, **changed})
    subject = subjects.moves(shard_of(callers.table_id))
    return engine.MovesReply.FromString(await callers.ask_once(subject, request.SerializeToString()))


async def moves(callers: Callers, player: str) -> table_pb2.ListMovesResponse:
    reply = await asked(callers, player)
    assert reply.HasField("moves"), reply
    return reply.moves


async def test_a_deal_is_played_to_its_end_by_the_list_alone(callers: Callers) -> None:
    await callers.open_with_six()
    await callers.all_ready()
    chance = random.Random(5)

    while (view := await callers.view("nobody")).public.phase == view_pb2.TABLE_PHASE_PLAYING:
        seat = view.public.turn if view.public.HasField("turn") else chance.choice(view.public.window.waiting)
        player = view.public.seats[seat].player_id
        listed = await moves(callers, player)
        acts = [move.action for move in listed.moves if move.action.kind not in {SUGGEST, ORDER}]

        assert (listed.version, listed.seat, listed.truncated) == (view.version, seat, False)
        assert accepted(await callers.act(player, chance.choice(acts[-3:]))) > view.version

    assert [list((await moves(callers, player)).moves) for player in PLAYERS] == [[]] * 6


async def test_the_list_has_the_options_of_the_view_and_every_hint(callers: Callers) -> None:
    await callers.open_with_six()
    await callers.all_ready()
    for _ in range(30):
        await callers.play(3)
        for player in PLAYERS:
            listed, private = await moves(callers, player), (await callers.view(player)).private
            laid = [move.action.cards for move in listed.moves if move.action.kind == LAY]
            hints = [hint for option in private.options if option.kind == LAY for hint in option.hints]

            assert list(listed.options) == list(private.options)
            assert set(hints) <= set(laid)
            assert len(hints) == min(len(laid), 12)


async def test_before_the_first_deal_nobody_has_moves(callers: Callers) -> None:
    await callers.open_with_six()

    assert await moves(callers, "anna") == table_pb2.ListMovesResponse(
        version=(await callers.view("anna")).version, seat=0
    )


@pytest.mark.parametrize(
    ("player", "changed", "fault"),
    [
        ("nobody", {}, engine.FAULT_NOT_YOUR_SEAT),
        ("", {}, engine.FAULT_NOT_YOUR_SEAT),
        ("anna", {"table_id": "01939c2e-0000-7000-8000-000000000001"}, engine.FAULT_NOT_FOUND),
        ("anna", {"table_id": "no id"}, engine.FAULT_MALFORMED),
    ],
)
async def test_who_has_no_seat_there_is_told_nothing(
    callers: Callers, player: str, changed: dict[str, str], fault: engine.Fault.ValueType
) -> None:
    await callers.open_with_six()

    assert (await asked(callers, player, **changed)).fault == fault


@pytest.mark.parametrize("deals", [1, 2])
def test_a_swap_of_places_is_offered_between_deals_and_not_after_the_last(deals: int) -> None:
    played = ended_with_two_of_a_team(deals)
    last = played.match.places[5]
    listed = [move.action.kind for move in table.legal_moves(played.match, last).moves]
    view = wire.view(TABLE_ID, played.match, last, 1, wire.public_part(played.match))

    assert listed == ([] if deals == 1 else [ActionKind.SWAP])
    assert [option.kind for option in view.private.options] == ([] if deals == 1 else [action_pb2.ACTION_KIND_SWAP])
    assert isinstance(played.plays(last, Swap(last)), table.Refused) == (deals == 1)


def ended_with_two_of_a_team(deals: int) -> LoggedTable:
    """A first deal of so many, over, with fifth and last place in one team (R6.10)."""
    variant = resolve("qingdao-charter", {**SHORT, "match_deals": str(deals)})
    for number in range(50):
        played = LoggedTable.seated(variant, chance=f"deal {number}")
        play_out(played, number)
        fifth, last = played.match.places[4:] or (0, 1)
        if fifth % 2 == last % 2:
            return played
    raise AssertionError("no deal ends so")
