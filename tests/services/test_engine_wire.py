"""What callers send becomes commands, or is malformed; what they are sent shows them what they may see."""

from typing import Any

import pytest
from google.protobuf.message import DecodeError
from gouji.engine.v1 import engine_pb2
from gouji.game.v1 import action_pb2, event_pb2, variant_pb2, view_pb2
from hypothesis import given
from hypothesis import strategies as st

from engine import match as table
from engine import rules
from engine.match import MatchReason, Seating
from engine.match import events as at_table
from engine.rules import commands as ask
from engine.rules.cards import parse
from engine.rules.variant import VARIANTS
from engine.runtime.faults import MalformedRequest, PermissionDenied
from engine.service import wire
from tests.support.tables import PLAYERS, TABLE_ID, LoggedTable

Kind = action_pb2.ActionKind
UNKNOWN_SEATING: Any = 9
ORDER = (2, 1, 0, 5, 4, 3)


def command(role: str = "player", player: str = "ann", **asked: Any) -> table.Command:
    request = engine_pb2.CommandRequest(caller=engine_pb2.Caller(player_id=player, role=role), **asked)
    return wire.command(request, lambda: ORDER)


def action(kind: Any, **fields: Any) -> object:
    return wire.action(action_pb2.Action(kind=kind, **fields))


def test_a_table_is_opened_with_a_variant_and_its_switches() -> None:
    opened = command(
        open_table=engine_pb2.OpenTable(
            variant_key="shandong",
            switches=["chaos_after=1"],
            deals=7,
            seating=variant_pb2.SEATING_DRAW,
        )
    )

    assert isinstance(opened, table.OpenTable)
    assert (opened.variant.key, opened.variant.chaos_after, opened.variant.match_deals) == ("shandong", 1, 7)
    assert (opened.seating, opened.players, opened.ranked, opened.draw) == (Seating.DRAW, (), False, ORDER)


@pytest.mark.parametrize(
    "opened",
    [
        engine_pb2.OpenTable(variant_key="poker"),
        engine_pb2.OpenTable(variant_key="shandong", switches=["chaos_after"]),
        engine_pb2.OpenTable(variant_key="shandong", switches=["chaos_after=often"]),
        engine_pb2.OpenTable(variant_key="shandong", switches=["weather=fine"]),
        engine_pb2.OpenTable(variant_key="shandong", deals=1001),
        engine_pb2.OpenTable(variant_key="shandong", seating=UNKNOWN_SEATING),
    ],
)
def test_a_table_nobody_can_play_at_is_malformed(opened: engine_pb2.OpenTable) -> None:
    with pytest.raises(MalformedRequest):
        command(open_table=opened)


def test_only_the_house_seats_players() -> None:
    with pytest.raises(PermissionDenied):
        command(open_table=engine_pb2.OpenTable(variant_key="shandong", players=PLAYERS))
    opened = command("service", open_table=engine_pb2.OpenTable(variant_key="shandong", players=PLAYERS, ranked=True))
    assert isinstance(opened, table.OpenTable)
    assert opened.players == PLAYERS


@pytest.mark.parametrize("players", [["ann"], ["ann"] * 6, [*PLAYERS, "gus"], ["", *PLAYERS[1:]]])
def test_a_table_is_opened_for_six_different_players(players: list[str]) -> None:
    with pytest.raises(MalformedRequest):
        command("service", open_table=engine_pb2.OpenTable(variant_key="shandong", players=players))


def test_who_asks_is_who_the_request_was_authenticated_for() -> None:
    assert command(player="ben", take_seat=engine_pb2.TakeSeat(seat=4)) == table.TakeSeat("ben", 4, ORDER)
    assert command(leave_seat=engine_pb2.LeaveSeat()) == table.LeaveSeat("ann")
    assert command(set_ready=engine_pb2.SetReady(ready=True, contribution="AB01")) == table.SetReady(
        "ann", ready=True, contribution="ab01"
    )


@pytest.mark.parametrize(
    "asked",
    [
        {"take_seat": engine_pb2.TakeSeat(seat=6)},
        {"set_ready": engine_pb2.SetReady(ready=True, contribution="xyz")},
        {"set_ready": engine_pb2.SetReady(ready=True, contribution="0" * 65)},
        {"act": engine_pb2.Act()},
        {},
    ],
)
def test_a_request_without_meaning_is_malformed(asked: dict[str, Any]) -> None:
    with pytest.raises(MalformedRequest):
        command(**asked)


def test_a_caller_without_a_name_does_nothing() -> None:
    with pytest.raises(MalformedRequest):
        command(player="", leave_seat=engine_pb2.LeaveSeat())


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        (Kind.ACTION_KIND_LAY, {"cards": "ss999"}, ask.Lay(0, parse("ss999"))),
        (Kind.ACTION_KIND_LAY, {}, ask.Lay(0, parse(""))),
        (Kind.ACTION_KIND_PASS, {}, ask.Pass(0)),
        (Kind.ACTION_KIND_BURN, {"cards": "KKK"}, ask.Burn(0, parse("KKK"))),
        (Kind.ACTION_KIND_BUY, {"ranks": "4"}, ask.Buy(0, 1)),
        (Kind.ACTION_KIND_DISCARD, {"ranks": "34"}, ask.Discard(0, (0, 1))),
        (Kind.ACTION_KIND_CONSULT, {"seat": 0}, ask.Consult(0, 0)),
        (Kind.ACTION_KIND_SUGGEST, {"seat": 2, "cards": "55"}, ask.Suggest(0, 2, parse("55"))),
        (Kind.ACTION_KIND_ORDER, {"sets": ["55", "K"]}, ask.Order(0, (parse("55"), parse("K")))),
        (Kind.ACTION_KIND_ASK, {"seat": 5}, ask.Ask(0, 5)),
    ],
)
def test_an_action_becomes_the_command_of_its_kind(kind: int, fields: dict[str, Any], expected: object) -> None:
    assert action(kind, **fields) == expected


def test_every_kind_of_action_is_understood() -> None:
    kinds = set(Kind.values()) - {Kind.ACTION_KIND_UNSPECIFIED}

    understood = {kind for kind in kinds if type(action(kind, **needed(kind))).__name__}

    assert understood == kinds


def needed(kind: Any) -> dict[str, Any]:
    """The fields without which this kind of action has no meaning."""
    fields: dict[Any, dict[str, Any]] = {
        Kind.ACTION_KIND_BUY: {"ranks": "3"},
        Kind.ACTION_KIND_CONSULT: {"seat": 1},
        Kind.ACTION_KIND_SUGGEST: {"seat": 1},
        Kind.ACTION_KIND_ASK: {"seat": 1},
    }
    return fields.get(kind, {})


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Kind.ACTION_KIND_UNSPECIFIED, {}),
        (99, {}),
        (Kind.ACTION_KIND_LAY, {"cards": "1"}),
        (Kind.ACTION_KIND_LAY, {"cards": "bS"}),
        (Kind.ACTION_KIND_LAY, {"cards": "b" * 40}),
        (Kind.ACTION_KIND_LAY, {"cards": "5" * 1000}),
        (Kind.ACTION_KIND_LAY, {"cards": "55", "seat": 0}),
        (Kind.ACTION_KIND_PASS, {"cards": "55"}),
        (Kind.ACTION_KIND_BUY, {"ranks": "34"}),
        (Kind.ACTION_KIND_BUY, {}),
        (Kind.ACTION_KIND_DISCARD, {"ranks": "x"}),
        (Kind.ACTION_KIND_CONSULT, {}),
        (Kind.ACTION_KIND_CONSULT, {"seat": 6}),
        (Kind.ACTION_KIND_ORDER, {"sets": ["5"] * 55}),
    ],
)
def test_an_action_that_does_not_fit_its_kind_is_malformed(kind: int, fields: dict[str, Any]) -> None:
    with pytest.raises(MalformedRequest):
        action(kind, **fields)


@given(st.binary(max_size=60))
def test_whatever_bytes_arrive_the_answer_is_a_command_or_a_fault(payload: bytes) -> None:
    request = engine_pb2.CommandRequest(caller=engine_pb2.Caller(player_id="ann", role="admin"))
    try:
        request.MergeFromString(payload)
    except DecodeError:
        return
    try:
        asked = wire.command(request, lambda: ORDER)
    except (MalformedRequest, PermissionDenied):
        return
    assert asked is not None


def test_only_an_operator_speaks_for_the_house() -> None:
    warning = engine_pb2.House(kind=engine_pb2.House.KIND_WARN, seat=2, reason="talk")

    assert command("admin", house=warning) == ask.Warn(2, "talk")
    for role in ("player", "service", ""):
        with pytest.raises(PermissionDenied):
            command(role, house=warning)


@pytest.mark.parametrize(
    ("house", "expected"),
    [
        (engine_pb2.House(kind=engine_pb2.House.KIND_FORFEIT, seat=1), ask.Forfeit(1)),
        (engine_pb2.House(kind=engine_pb2.House.KIND_DOCK, seat=1, points=3), ask.Dock(1, 3)),
        (engine_pb2.House(kind=engine_pb2.House.KIND_JUDGE_LAST, seat=1), ask.JudgeLast(1)),
        (engine_pb2.House(kind=engine_pb2.House.KIND_DISQUALIFY, seat=1), ask.Disqualify(1)),
        (engine_pb2.House(kind=engine_pb2.House.KIND_SUBSTITUTE, seat=1, player_id="gus"), table.Substitute(1, "gus")),
        (engine_pb2.House(kind=engine_pb2.House.KIND_CLOSE, reason="storm"), table.CloseTable("storm")),
    ],
)
def test_the_house_commands(house: engine_pb2.House, expected: object) -> None:
    assert command("admin", house=house) == expected


@pytest.mark.parametrize(
    "house",
    [
        engine_pb2.House(),
        engine_pb2.House(kind=engine_pb2.House.KIND_DOCK, seat=1),
        engine_pb2.House(kind=engine_pb2.House.KIND_WARN, seat=7),
        engine_pb2.House(kind=engine_pb2.House.KIND_WARN, reason="x" * 300),
    ],
)
def test_a_house_command_without_meaning_is_malformed(house: engine_pb2.House) -> None:
    with pytest.raises(MalformedRequest):
        command("admin", house=house)


@pytest.mark.parametrize("reason", [*MatchReason, *rules.Reason], ids=lambda reason: reason.name)
def test_every_reason_has_a_name_on_the_wire(reason: MatchReason | rules.Reason) -> None:
    outcome = wire.refused(reason, 7)

    assert action_pb2.Reason.Name(outcome.refused.reason) == f"REASON_{reason.name}"
    assert outcome.refused.version == 7


def test_every_reason_of_the_wire_is_given_by_somebody() -> None:
    named = {name.removeprefix("REASON_") for name, _ in action_pb2.Reason.items()} - {"UNSPECIFIED"}

    assert named == {reason.name for reason in (*MatchReason, *rules.Reason)}


def test_an_accepted_command_tells_its_version() -> None:
    assert wire.accepted(12).accepted.version == 12


def test_an_event_travels_under_its_name() -> None:
    form = wire.form(at_table.SeatTaken(0, "ann"), None)

    assert form == event_pb2.Event(seat_taken=event_pb2.SeatTaken(seat=0, player="ann"))


def test_what_is_hidden_is_absent_from_the_form() -> None:
    playing = LoggedTable.seated()
    assert playing.match.started is not None

    shown = wire.form(playing.match.started, 3).deal_started

    assert not any(shown.HasField(name) for name in ("seed", "contributions", "deck"))
    assert shown.commitment == playing.match.started.commitment


def test_a_view_before_the_first_deal_shows_seats_and_readiness() -> None:
    opened = LoggedTable()
    opened.accepts(table.OpenTable(VARIANTS["shandong"], players=PLAYERS))
    opened.accepts(table.SetReady("cem", ready=True))

    public = view_pb2.PublicView.FromString(wire.public_part(opened.match, 1234))

    assert public.phase == view_pb2.TABLE_PHASE_GATHERING
    assert [seat.player_id for seat in public.seats] == list(PLAYERS)
    assert [seat.ready for seat in public.seats] == [False, False, True, False, False, False]
    assert public.next_commitment == opened.match.commitment
    assert public.deadline_at_ms == 1234
    assert public.variant.key == "shandong"


def test_a_seats_view_has_a_private_part_and_a_spectators_has_not() -> None:
    playing = LoggedTable.seated()
    public = wire.public_part(playing.match)

    seat = wire.view(TABLE_ID, playing.match, 3, 9, public)
    spectator = wire.view(TABLE_ID, playing.match, None, 9, public)

    assert seat.private.seat == 3
    assert len(seat.private.hand) >= 36
    assert not spectator.HasField("private")
    assert seat.public == spectator.public == view_pb2.PublicView.FromString(public)
    assert (seat.table_id, seat.version) == (str(TABLE_ID), 9)


def test_the_public_part_names_no_hidden_card() -> None:
    playing = LoggedTable.seated()

    public = view_pb2.PublicView.FromString(wire.public_part(playing.match))

    assert all(not seat.HasField("hand") for seat in public.seats)


def test_a_table_in_a_list() -> None:
    playing = LoggedTable.seated()

    summary = wire.summary(TABLE_ID, playing.match)

    assert (summary.seated, summary.deal, summary.variant_key) == (6, 1, "qingdao-charter")
    assert summary.phase == view_pb2.TABLE_PHASE_PLAYING
