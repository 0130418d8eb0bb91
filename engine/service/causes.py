"""Which command made these events: the log keeps facts, a played deal is written as what was asked for.

Law: guesses from the facts and proves each guess by deciding it again; nothing is believed. Where several commands make
the same events, such as a pass that is a cover, the first guess stands for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, get_args

from engine import match as table
from engine import rules
from engine.match import Event, Match
from engine.match import events as at_table
from engine.rules import commands as ask
from engine.rules import events as fact
from engine.rules.cards import NO_CARDS, cards_of, faces_of, rank_of
from engine.rules.commands import SeatCommand
from engine.rules.events import WindowKind

_LOOK_AHEAD = 8
_SEAT_COMMANDS = get_args(SeatCommand)

_SAME_SEAT: dict[type[Any], type[Any]] = {
    fact.Passed: ask.Pass,
    fact.Covered: ask.Cover,
    fact.Yielded: ask.Yield,
    fact.PurchaseDeclined: ask.No,
    fact.RanksKept: ask.Keep,
    fact.OrderAsked: ask.HandOver,
    fact.OrderDeclined: ask.Decline,
    fact.WindfallApplied: ask.Apply,
    fact.PartingGoujiRenounced: ask.Renounce,
    fact.SwapProposed: ask.Swap,
    fact.TimedOut: ask.TimeOut,
}
"""Commands of which the event tells the seat, and which say no more than that."""

_PENALTIES: dict[type[Any], type[Any]] = {
    fact.Warned: ask.Warn,
    fact.Forfeited: ask.Forfeit,
    fact.JudgedLast: ask.JudgeLast,
    fact.Disqualified: ask.Disqualify,
}
_ANSWERS: dict[WindowKind, tuple[type[Any], type[Any]]] = {
    WindowKind.REVOLUTION: (ask.Stay, ask.Revolt),
    WindowKind.DECLARE: (ask.Silent, ask.Declare),
    WindowKind.WINDFALL: (ask.Refuse, ask.Agree),
}


class NoCause(Exception):
    """No command makes these events: the log was written by other rules, or is not a log."""


def cause(match: Match, events: Sequence[Event]) -> tuple[Any, int]:
    """The command that made the first of these events, as written with its seat, and how many events it made."""
    for event in islice(events, _LOOK_AHEAD):
        for command in _guesses(match, event):
            made = decided(match, command)
            if made and made == tuple(events[: len(made)]):
                return command, len(made)
    raise NoCause(type(events[0]).__name__)


def decided(match: Match, command: Any) -> tuple[Event, ...]:
    """The events of a command that is written with its seat; none when it is refused."""
    if isinstance(command, _SEAT_COMMANDS):
        command = table.Play(match.players[command.seat], command)
    made = table.decide(match, command)
    return () if isinstance(made, table.Refused | rules.Refused) else made


def _guesses(match: Match, event: Event) -> Iterator[Any]:
    if made := _SAME_SEAT.get(type(event)):
        yield made(event.seat)  # type: ignore[union-attr]
    elif made := _PENALTIES.get(type(event)):
        yield made(event.seat, event.reason)  # type: ignore[union-attr]
    elif isinstance(event, table.MatchEvent):
        yield from _at_the_table(event)
    elif isinstance(event, fact.Answered):
        yield from _answer(match, event)
    else:
        yield from _with_cards(match, event)
        yield from _with_seats(match, event)


def _at_the_table(event: Event) -> Iterator[Any]:
    match event:
        case at_table.SeatTaken(seat, player):
            yield table.TakeSeat(player, seat, draw=(seat, *(one for one in table.SEATS if one != seat)))
        case at_table.SeatLeft(_, player):
            yield table.LeaveSeat(player)
        case at_table.SeatSubstituted(seat, player):
            yield table.Substitute(seat, player)
        case at_table.DealCalled():
            yield table.CallDeal()
        case at_table.TableClosed(reason):
            yield table.CloseTable(reason)
        case at_table.DeadlineExtended(until_ms):
            yield table.ExtendDeadline(until_ms)
        case _:
            return


def _answer(match: Match, event: fact.Answered) -> Iterator[Any]:
    if match.deal is None or match.deal.window is None:
        return
    kind = match.deal.window.kind
    if pair := _ANSWERS.get(kind):
        yield pair[bool(event.yes)](event.seat)
    elif event.cards:
        yield ask.Burn(event.seat, event.cards)
    else:
        yield ask.Decline(event.seat)


def _with_cards(match: Match, event: Event) -> Iterator[Any]:
    match event:
        case fact.SetLaid(seat, cards):
            yield ask.Lay(seat, cards)
        case fact.TurnLost(seat, _):
            # What was laid wrongly is not in the log; any wrong set loses the turn (R4.10).
            yield ask.Lay(seat, NO_CARDS)
        case fact.BurnFailed(seat) if match.deal is not None:
            # Nor is what a false burner led; the cards stayed in his hand (R5.8).
            yield from (ask.Lay(seat, cards_of((one,))) for one in faces_of(match.deal.hands[seat]))
        case fact.Bought(seat, _, card):
            yield ask.Buy(seat, rank_of(next(faces_of(card))))
        case fact.RanksDiscarded(seat, ranks):
            yield ask.Discard(seat, ranks)
        case fact.TributeReturned(seat=seat, cards=cards) if cards is not None:
            yield ask.Return(seat, cards)
        case fact.Suggested(seat, to, cards) if cards is not None:
            yield ask.Suggest(seat, to, cards)
        case fact.OrderGiven(seat, _, sets) if sets is not None:
            yield ask.Order(seat, sets)
        case _:
            return


def _with_seats(match: Match, event: Event) -> Iterator[Any]:
    match event:
        case fact.Consulted(seat, teammate):
            yield ask.Consult(seat, teammate)
        case fact.CountAsked(seat, of):
            yield ask.Ask(seat, of)
        case fact.PointsDocked(seat, points, reason):
            yield ask.Dock(seat, points, reason)
        case fact.PlacesSwapped():
            yield from (ask.Agree(seat) for seat in match.places[4:])
        case _:
            return
