"""What travels between the engine and its callers, to and from the match's own values.

Law: shape only. A request that has no meaning is a `MalformedRequest`, one that the caller may not send at all a
`PermissionDenied`; whether a meaningful one is accepted, the match decides. Nothing leaves but by `form` and `view`, and
those ask `match.redacted` and the rules' views what the audience may see.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from uuid import UUID

from gouji.engine.v1 import engine_pb2
from gouji.game.v1 import action_pb2, event_pb2, variant_pb2, view_pb2
from gouji.table.v1 import table_pb2

from engine import match as table
from engine import rules
from engine.match import Match, Seating
from engine.match.commands import IN_ORDER
from engine.rules import commands as seat_commands
from engine.rules.cards import LETTERS, Cards, NotCards, parse
from engine.rules.commands import SeatCommand
from engine.rules.variant import VARIANTS, ImpossibleVariant, Variant, differences, resolve
from engine.runtime.faults import MalformedRequest, PermissionDenied
from engine.service.codec import name_of, to_message

ADMIN = "admin"
SERVICE = "service"
UNSEATED = 0
"""The seat written in a command whose seat the match has yet to find."""

_MOST_SETS = 54
_LONGEST_TEXT = 256
_LONGEST_CONTRIBUTION = 64
_MOST_POINTS = 1000

Kind = action_pb2.ActionKind
Reason = table.MatchReason | rules.Reason


def command(request: engine_pb2.CommandRequest, draw: Callable[[], tuple[int, ...]]) -> table.Command:
    """The command that a request asks for, in the name of its caller.

    `draw` gives a random order of the seats. Raises `MalformedRequest` and `PermissionDenied`.
    """
    player = _text(request.caller.player_id, "player_id")
    match request.WhichOneof("command"):
        case "open_table":
            return _open_table(request.open_table, request.caller.role, draw())
        case "house":
            return _house(request.house, request.caller.role)
        case "take_seat":
            return table.TakeSeat(_name(player), _seat(request.take_seat.seat), draw())
        case "leave_seat":
            return table.LeaveSeat(_name(player))
        case "set_ready":
            ready = request.set_ready
            return table.SetReady(_name(player), ready.ready, _contribution(ready.contribution))
        case "act":
            return table.Play(_name(player), action(request.act.action))
        case _:
            raise MalformedRequest("The request holds no command.")


def _open_table(request: engine_pb2.OpenTable, role: str, draw: tuple[int, ...]) -> table.OpenTable:
    players = tuple(_name(player) for player in request.players)
    if (players or request.ranked) and role not in {ADMIN, SERVICE}:
        raise PermissionDenied("Only the house seats players and opens ranked tables.")
    if len(set(players)) not in {0, 6} or len(players) not in {0, 6}:
        raise MalformedRequest("A table is opened for six different players or for nobody yet.")
    seats = IN_ORDER if request.as_listed else draw
    return table.OpenTable(_variant(request), _seating(request.seating), players, request.ranked, seats)


def opening(command: table.OpenTable) -> engine_pb2.OpenTable:
    """An opening of the house's as it is put to whoever leads the table; its players sit as they are listed."""
    switches = differences(command.variant, VARIANTS[command.variant.key])
    return engine_pb2.OpenTable(
        variant_key=command.variant.key,
        switches=[f"{name}={value}" for name, value in switches.items()],
        seating=variant_pb2.Seating.Value(f"SEATING_{command.seating.name}"),
        players=command.players,
        ranked=command.ranked,
        as_listed=True,
    )


def _variant(request: engine_pb2.OpenTable) -> Variant:
    overrides: dict[str, str] = {}
    for switch in request.switches:
        name, written, value = switch.partition("=")
        if not written:
            raise MalformedRequest("A switch is written name=value.")
        overrides[name] = value
    if request.deals:
        overrides["match_deals"] = str(request.deals)
    try:
        return resolve(request.variant_key, overrides)
    except ImpossibleVariant as error:
        raise MalformedRequest(str(error)) from error


def _seating(value: variant_pb2.Seating.ValueType) -> Seating:
    if value == variant_pb2.SEATING_UNSPECIFIED:
        return Seating.CHOSEN_TEAMS
    try:
        return Seating[variant_pb2.Seating.Name(value).removeprefix("SEATING_")]
    except ValueError as error:
        raise MalformedRequest("There is no such way of forming teams.") from error


def _house(request: engine_pb2.House, role: str) -> table.Command:
    if role != ADMIN:
        raise PermissionDenied("Only an operator speaks for the house.")
    kind = engine_pb2.House.Kind
    seat, reason = _seat(request.seat), _text(request.reason, "reason")
    match request.kind:
        case kind.KIND_WARN:
            return seat_commands.Warn(seat, reason)
        case kind.KIND_FORFEIT:
            return seat_commands.Forfeit(seat, reason)
        case kind.KIND_DOCK:
            return seat_commands.Dock(seat, _points(request.points), reason)
        case kind.KIND_JUDGE_LAST:
            return seat_commands.JudgeLast(seat, reason)
        case kind.KIND_DISQUALIFY:
            return seat_commands.Disqualify(seat, reason)
        case kind.KIND_SUBSTITUTE:
            return table.Substitute(seat, _text(request.player_id, "player_id"))
        case kind.KIND_CLOSE:
            return table.CloseTable(reason)
        case _:
            raise MalformedRequest("The house command has no kind.")


def action(request: action_pb2.Action) -> SeatCommand:
    """The command of a seat that is still to be found; raises `MalformedRequest` for fields that do not fit."""
    read = _ACTIONS.get(request.kind)
    if read is None:
        raise MalformedRequest("The action has no kind.")
    fields, make = read
    present = {field.name for field, _ in request.ListFields()} - {"kind"}
    if not present <= fields:
        raise MalformedRequest("The action has a field that its kind does not read.")
    return make(request)


def _plain(make: Callable[[int], SeatCommand]) -> Callable[[action_pb2.Action], SeatCommand]:
    return lambda _: make(UNSEATED)


def _with_cards(make: Callable[[int, Cards], SeatCommand]) -> Callable[[action_pb2.Action], SeatCommand]:
    return lambda request: make(UNSEATED, _cards(request.cards))


def _with_seat(make: Callable[[int, int], SeatCommand]) -> Callable[[action_pb2.Action], SeatCommand]:
    return lambda request: make(UNSEATED, _named_seat(request))


def _suggest(request: action_pb2.Action) -> SeatCommand:
    return seat_commands.Suggest(UNSEATED, _named_seat(request), _cards(request.cards))


def _buy(request: action_pb2.Action) -> SeatCommand:
    ranks = _ranks(request.ranks)
    if len(ranks) != 1:
        raise MalformedRequest("One rank is bought at a time.")
    return seat_commands.Buy(UNSEATED, ranks[0])


def _discard(request: action_pb2.Action) -> SeatCommand:
    return seat_commands.Discard(UNSEATED, _ranks(request.ranks))


def _order(request: action_pb2.Action) -> SeatCommand:
    if len(request.sets) > _MOST_SETS:
        raise MalformedRequest("There are more sets than a hand has cards.")
    return seat_commands.Order(UNSEATED, tuple(_cards(one) for one in request.sets))


_Read = tuple[frozenset[str], Callable[[action_pb2.Action], SeatCommand]]
_ACTIONS: dict[int, _Read] = {
    Kind.ACTION_KIND_LAY: (frozenset({"cards"}), _with_cards(seat_commands.Lay)),
    Kind.ACTION_KIND_PASS: (frozenset(), _plain(seat_commands.Pass)),
    Kind.ACTION_KIND_COVER: (frozenset(), _plain(seat_commands.Cover)),
    Kind.ACTION_KIND_YIELD: (frozenset(), _plain(seat_commands.Yield)),
    Kind.ACTION_KIND_BURN: (frozenset({"cards"}), _with_cards(seat_commands.Burn)),
    Kind.ACTION_KIND_DECLINE: (frozenset(), _plain(seat_commands.Decline)),
    Kind.ACTION_KIND_APPLY: (frozenset(), _plain(seat_commands.Apply)),
    Kind.ACTION_KIND_AGREE: (frozenset(), _plain(seat_commands.Agree)),
    Kind.ACTION_KIND_REFUSE: (frozenset(), _plain(seat_commands.Refuse)),
    Kind.ACTION_KIND_REVOLT: (frozenset(), _plain(seat_commands.Revolt)),
    Kind.ACTION_KIND_STAY: (frozenset(), _plain(seat_commands.Stay)),
    Kind.ACTION_KIND_RENOUNCE: (frozenset(), _plain(seat_commands.Renounce)),
    Kind.ACTION_KIND_DECLARE: (frozenset(), _plain(seat_commands.Declare)),
    Kind.ACTION_KIND_SILENT: (frozenset(), _plain(seat_commands.Silent)),
    Kind.ACTION_KIND_BUY: (frozenset({"ranks"}), _buy),
    Kind.ACTION_KIND_NO: (frozenset(), _plain(seat_commands.No)),
    Kind.ACTION_KIND_DISCARD: (frozenset({"ranks"}), _discard),
    Kind.ACTION_KIND_KEEP: (frozenset(), _plain(seat_commands.Keep)),
    Kind.ACTION_KIND_RETURN: (frozenset({"cards"}), _with_cards(seat_commands.Return)),
    Kind.ACTION_KIND_CONSULT: (frozenset({"seat"}), _with_seat(seat_commands.Consult)),
    Kind.ACTION_KIND_SUGGEST: (frozenset({"seat", "cards"}), _suggest),
    Kind.ACTION_KIND_HAND_OVER: (frozenset(), _plain(seat_commands.HandOver)),
    Kind.ACTION_KIND_ORDER: (frozenset({"sets"}), _order),
    Kind.ACTION_KIND_SWAP: (frozenset(), _plain(seat_commands.Swap)),
    Kind.ACTION_KIND_ASK: (frozenset({"seat"}), _with_seat(seat_commands.Ask)),
}


def _cards(written: str) -> Cards:
    try:
        return parse(_text(written, "cards"))
    except NotCards as error:
        raise MalformedRequest(str(error)) from error


def _ranks(written: str) -> tuple[int, ...]:
    if len(written) > len(LETTERS) or any(letter not in LETTERS for letter in written):
        raise MalformedRequest("Ranks are written as card letters.")
    return tuple(LETTERS.index(letter) for letter in written)


def _named_seat(request: action_pb2.Action) -> int:
    if not request.HasField("seat"):
        raise MalformedRequest("The action names no seat.")
    return _seat(request.seat)


def _seat(seat: int) -> int:
    if seat not in table.SEATS:
        raise MalformedRequest("Seats are 0 to 5.")
    return seat


def _points(points: int) -> int:
    if not 0 < points <= _MOST_POINTS:
        raise MalformedRequest("Points taken are 1 to 1000.")
    return points


def _text(written: str, field: str) -> str:
    if len(written) > _LONGEST_TEXT or not written.isprintable():
        raise MalformedRequest(f"The field {field} is too long or not printable.")
    return written


def _name(player: str) -> str:
    if not player or len(player) > _LONGEST_TEXT or not player.isprintable() or " " in player:
        raise MalformedRequest("A player's id is missing or not one printable word.")
    return player


def _contribution(written: str) -> str:
    if len(written) > _LONGEST_CONTRIBUTION or any(digit not in "0123456789abcdefABCDEF" for digit in written):
        raise MalformedRequest("A contribution is at most 64 hex digits.")
    return written.lower()


def accepted(version: int) -> table_pb2.Outcome:
    """The answer to a command that took effect, with the version of its last event."""
    return table_pb2.Outcome(accepted=table_pb2.Accepted(version=version))


def refused(reason: Reason, version: int) -> table_pb2.Outcome:
    """The answer to a command that changed nothing, with the table's version when it was judged."""
    number = action_pb2.Reason.Value(f"REASON_{reason.name}")
    return table_pb2.Outcome(refused=table_pb2.Refused(reason=number, version=version))


def form(event: table.Event, audience: int | None) -> event_pb2.Event:
    """The event as a seat, or the public (`None`), may see it; empty where only that it happened may be known."""
    shown = table.redacted(event, audience)
    return event_pb2.Event() if shown is None else event_pb2.Event(**{name_of(shown): to_message(shown)})


def public_part(match: Match, deadline_at_ms: int = 0) -> bytes:
    """What everybody is shown of a table, as the bytes of a `PublicView`; build it once for all audiences of a version."""
    shown = view_pb2.PublicView() if match.deal is None else to_message(rules.public_view(match.deal))
    shown.phase = view_pb2.TablePhase.Value(f"TABLE_PHASE_{match.phase.name}")
    shown.variant.MergeFromString(_variant_bytes(match.variant))
    shown.seating = variant_pb2.Seating.Value(f"SEATING_{match.seating.name}")
    shown.deal = match.deal_number
    shown.deadline_at_ms = deadline_at_ms
    shown.commitment = "" if match.started is None else match.started.commitment
    shown.next_commitment = match.commitment
    shown.even_points = match.even_points
    shown.odd_points = match.odd_points
    shown.counted = match.counted
    _show_players(match, shown)
    part: bytes = shown.SerializeToString()
    return part


@lru_cache(maxsize=256)
def _variant_bytes(variant: Variant) -> bytes:
    """The same few variants are shown again and again."""
    written: bytes = to_message(variant).SerializeToString()
    return written


def _show_players(match: Match, shown: view_pb2.PublicView) -> None:
    for seat, player in enumerate(match.players):
        place = shown.seats[seat] if seat < len(shown.seats) else shown.seats.add()
        place.seat = seat
        place.player_id = player
        place.ready = match.ready[seat]
        place.points = match.points[seat]


def view(table_id: UUID, match: Match, audience: int | None, version: int, public: bytes) -> view_pb2.View:
    """A table at one version for a seat or for the public (`None`), around the public part of that version."""
    shown = view_pb2.View()
    fill_view(shown, table_id, match, audience, version=version, public=public)
    return shown


def fill_view(
    shown: view_pb2.View, table_id: UUID, match: Match, audience: int | None, *, version: int, public: bytes
) -> None:
    """Make this `view` where it belongs, for a message that is put into another is copied."""
    shown.table_id = str(table_id)
    shown.version = version
    shown.public.MergeFromString(public)
    private = _private_part(match, audience)
    if private is not None:
        shown.private.CopyFrom(private)


def _private_part(match: Match, audience: int | None) -> view_pb2.PrivateView | None:
    if audience is None:
        return None
    if match.deal is None:
        return view_pb2.PrivateView(seat=audience)
    private: view_pb2.PrivateView = to_message(rules.private_view(match.deal, audience))
    if table.is_over(match):
        # The deal would still take a swap of places (R6.10), but its table takes nothing any more.
        private.ClearField("options")
    return private


def moves(match: Match, seat: int, version: int) -> table_pb2.ListMovesResponse:
    """Everything that a seat may do at this version."""
    listed = table.legal_moves(match, seat)
    return table_pb2.ListMovesResponse(
        version=version,
        seat=seat,
        options=map(to_message, listed.options),
        moves=map(to_message, listed.moves),
        truncated=listed.truncated,
    )


def summary(table_id: UUID, match: Match) -> table_pb2.TableSummary:
    """A table in a list of tables."""
    return table_pb2.TableSummary(
        table_id=str(table_id),
        phase=view_pb2.TablePhase.Value(f"TABLE_PHASE_{match.phase.name}"),
        variant_key=match.variant.key,
        seated=sum(player != table.NOBODY for player in match.players),
        deal=match.deal_number,
    )
