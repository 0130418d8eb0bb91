"""What an event makes of a match.

Law: copies only. Nothing is looked up in a rule, nothing is refused, and any prefix of a table's events folds. The
state of the running deal is folded by `rules.evolve`, which obeys the same law.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from engine import rules
from engine.match import events as happened
from engine.match.events import DealStarted, Event, MatchEvent, TableOpened
from engine.match.seating import EMPTY_SEATS, NOBODY, placed
from engine.match.standings import with_deal, with_dock
from engine.match.state import NO_CONTRIBUTIONS, NOT_READY, Match, Phase
from engine.rules import events as dealt
from engine.rules.events import DealEvent

_SAME_WAIT = (
    dealt.Answered,
    dealt.Consulted,
    dealt.CountAsked,
    dealt.Disqualified,
    dealt.Forfeited,
    dealt.PartingGoujiRenounced,
    dealt.PlacesSwapped,
    dealt.PointsDocked,
    dealt.Suggested,
    dealt.SwapProposed,
    dealt.TimedOut,
    dealt.Warned,
)
"""Events of a deal after which the table still waits for the same."""

_OWN_ACTS = (dealt.Answered, dealt.Covered, dealt.Passed, dealt.SetLaid, dealt.Yielded)
_PENALTIES = (dealt.Warned, dealt.Forfeited, dealt.PointsDocked, dealt.Disqualified)


def evolve(match: Match, event: Event) -> Match:
    """The match after this event; never fails for an event that `decide` produced."""
    if isinstance(event, MatchEvent):
        return _at_the_table(match, event)
    return _in_the_deal(match, event)


def fold(match: Match, events: Iterable[Event]) -> Match:
    """The match after these events."""
    for event in events:
        match = evolve(match, event)
    return match


def setup_of(started: DealStarted) -> rules.Setup:
    """What the rules are told of a deal that starts; an undealt deck where the deck is hidden."""
    return rules.Setup(
        variant=started.variant,
        deck=started.deck or (),
        places=started.places,
        debts=started.debts,
        cutter=started.cutter,
        changed=started.changed,
        random_seat=started.random_seat,
        first_drawer=started.first_drawer,
    )


def _at_the_table(match: Match, event: MatchEvent) -> Match:
    match event:
        case TableOpened():
            return _opened(event)
        case DealStarted():
            return _started(event)
        case happened.SeatTaken() | happened.SeatSubstituted():
            return _seated(match, event.seat, event.player)
        case happened.SeatLeft():
            return _seated(match, event.seat, NOBODY)
        case happened.ReadyChanged():
            return _made_ready(match, event)
        case happened.DealRevealed():
            return match
        case _:
            return _noted(match, event)


def _noted(
    match: Match,
    event: happened.SeedCommitted
    | happened.DealCalled
    | happened.MatchFinished
    | happened.TableClosed
    | happened.DeadlineExtended,
) -> Match:
    match event:
        case happened.SeedCommitted():
            return match._replace(commitment=event.commitment, seed=event.seed or "")
        case happened.DealCalled():
            return match._replace(called=True)
        case happened.MatchFinished():
            return match._replace(phase=Phase.FINISHED)
        case happened.TableClosed():
            return match._replace(phase=Phase.CLOSED)
        case happened.DeadlineExtended():
            return match._replace(extended_to_ms=event.until_ms)
        case _:
            assert_never(event)


def _opened(event: TableOpened) -> Match:
    return Match(
        phase=Phase.GATHERING,
        variant=event.variant,
        seating=event.seating,
        ranked=event.ranked,
        players=event.players or EMPTY_SEATS,
    )


def _seated(match: Match, seat: int, player: str) -> Match:
    seated = match._replace(
        players=placed(match.players, seat, player),
        ready=tuple(was and one != seat for one, was in enumerate(match.ready)),
        contributions=placed(match.contributions, seat, ""),
    )
    return _new_wait(seated) if match.phase is Phase.GATHERING else seated


def _made_ready(match: Match, event: happened.ReadyChanged) -> Match:
    return match._replace(
        ready=tuple(event.ready if seat == event.seat else was for seat, was in enumerate(match.ready)),
        contributions=placed(match.contributions, event.seat, event.contribution or ""),
    )


def _new_wait(match: Match) -> Match:
    return match._replace(turn=match.turn + 1, extended_to_ms=0)


def _started(event: DealStarted) -> Match:
    return Match(
        phase=Phase.PLAYING,
        variant=event.variant,
        seating=event.seating,
        ranked=event.ranked,
        players=event.players,
        barred=event.barred,
        deal_number=event.deal,
        counted=event.counted,
        started=event,
        deal=rules.open_deal(setup_of(event)),
        points=event.points,
        even_points=event.even_points,
        odd_points=event.odd_points,
        places=event.places,
        debts=event.debts,
        cutter=event.cutter,
    )


def _in_the_deal(match: Match, event: DealEvent) -> Match:
    deal = match.deal
    if deal is not None and not (isinstance(event, _PENALTIES) and match.phase is not Phase.PLAYING):
        match = match._replace(deal=rules.evolve(deal, event))
    if isinstance(event, dealt.TimedOut):
        match = match._replace(overdue=event.seat)
    elif isinstance(event, _OWN_ACTS):
        match = match._replace(acted=match.acted or match.overdue != event.seat, overdue=None)
    if not isinstance(event, _SAME_WAIT):
        match = _new_wait(match)
    return _remembered(match, event)


def _remembered(match: Match, event: DealEvent) -> Match:
    """What the match itself keeps of a deal's event."""
    match event:
        case dealt.CardsDealt():
            cutter = match.cutter if event.cutter is None else event.cutter
            return match._replace(cutter=cutter, drawer=event.first_drawer)
        case dealt.DealEnded():
            scored = with_deal(match, event.even_points, event.odd_points)
            return _between_deals(scored._replace(places=event.places, debts=event.debts))
        case dealt.DealVoided():
            return _between_deals(match._replace(voided=True))
        case dealt.PlacesSwapped():
            return match._replace(places=event.places, debts=event.debts)
        case dealt.PointsDocked():
            return with_dock(match, event.seat, event.points)
        case dealt.Disqualified():
            removed = _seated(match, event.seat, NOBODY)
            return removed._replace(barred=(*match.barred, match.players[event.seat]))
        case _:
            return match


def _between_deals(match: Match) -> Match:
    return match._replace(
        phase=Phase.BETWEEN_DEALS,
        ready=NOT_READY,
        called=False,
        commitment="",
        seed="",
        contributions=NO_CONTRIBUTIONS,
    )
