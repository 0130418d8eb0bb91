"""The one place where a card is hidden: what a viewer is shown of an event and of a deal (R11, R14.6).

Law: by allow-list. An event that carries cards has an entry in `_REDACTIONS` that keeps what the viewer may see; every
other event is public as it stands and is listed in `PUBLIC`. A viewer is a seat, or None for the public.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from engine.rules import advice
from engine.rules import events as e
from engine.rules.cards import Cards, size
from engine.rules.options import Option, options
from engine.rules.seats import MEMBERS, SEATS, has, team, teammates
from engine.rules.state import Deal, is_over, turn

HAND, COUNT, NOTHING = "hand", "count", "nothing"


def sees(deal: Deal, viewer: int | None, seat: int) -> str:
    """What the viewer is shown of this seat's hand: `hand`, `count` or `nothing` (R11.1, R11.2, R11.4)."""
    if sees_hand(deal, viewer, seat):
        return HAND
    return COUNT if advice.count_is_shown(deal, seat) else NOTHING


def sees_hand(deal: Deal, viewer: int | None, seat: int) -> bool:
    """Whether the viewer is shown the cards themselves."""
    if viewer == seat or is_over(deal):
        return True
    return viewer is not None and advice.sees_by_advice(deal, viewer, seat)


def redacted(event: e.DealEvent, viewer: int | None) -> e.DealEvent | None:
    """The event as this viewer may see it; None when not even its kind may be known, only that there was one."""
    redact = _REDACTIONS.get(type(event))
    return event if redact is None else redact(event, viewer)


def _own_hand_only(event: e.CardsDealt, viewer: int | None) -> e.CardsDealt:
    hands = tuple(hand if seat == viewer else None for seat, hand in enumerate(event.hands))
    return replace(event, hands=hands)


def _between_payer_and_payee(event: e.TributePaid, viewer: int | None) -> e.TributePaid:
    return event if viewer in (event.payer, event.payee) else replace(event, cards=None)


def _between_returner_and_payer(event: e.TributeReturned, viewer: int | None) -> e.TributeReturned:
    return event if viewer in (event.seat, event.payer) else replace(event, cards=None)


def _that_it_answered(event: e.Answered, viewer: int | None) -> e.Answered:
    return event if viewer == event.seat else e.Answered(event.seat, None, None)


def _between_the_two(event: e.Suggested, viewer: int | None) -> e.Suggested:
    return event if viewer in (event.seat, event.to) else replace(event, cards=None)


def _for_the_team(event: e.OrderGiven, viewer: int | None) -> e.OrderGiven:
    return event if viewer is not None and team(viewer) == team(event.to) else replace(event, sets=None)


def _for_its_seat(event: e.FoursDue | e.OpeningLost, viewer: int | None) -> e.DealEvent | None:
    # Which of the two it is tells whether the seat holds a 4 (R8.2).
    return event if viewer == event.seat else None


_REDACTIONS: dict[type, Callable[[Any, int | None], e.DealEvent | None]] = {
    e.CardsDealt: _own_hand_only,
    e.TributePaid: _between_payer_and_payee,
    e.TributeReturned: _between_returner_and_payer,
    e.Answered: _that_it_answered,
    e.Suggested: _between_the_two,
    e.OrderGiven: _for_the_team,
    e.FoursDue: _for_its_seat,
    e.OpeningLost: _for_its_seat,
}

PUBLIC: frozenset[type] = frozenset(
    {
        e.Revolted,
        e.DealVoided,  # everything is shown after a void deal (R11.4)
        e.Bought,  # buying is public (R9.5)
        e.PurchaseDeclined,
        e.DebtLapsed,
        e.Declared,
        e.RanksDiscarded,  # taken out of all hands in the open (R9.6)
        e.RanksKept,
        e.PhaseBegan,
        e.PurchaseOffered,
        e.ReturnDue,
        e.WindowOpened,
        e.WindowClosed,
        e.SetLaid,
        e.Passed,
        e.Covered,
        e.Yielded,
        e.TurnLost,
        e.TimedOut,
        e.TrickEnded,
        e.BurnDeclared,
        e.BurnStarted,
        e.BurnCountered,
        e.BurnRelieved,
        e.BurnFailed,
        e.BurnEnded,
        e.BurnSucceeded,
        e.WentOut,
        e.WindfallApplied,
        e.WindfallGranted,
        e.WindfallRefused,
        e.PartingGoujiLaid,
        e.PartingGoujiRenounced,
        e.BecameHeadless,
        e.ChaosBegan,
        e.RevolterPromoted,
        e.Smothered,
        e.Failed,
        e.DealEnded,
        e.PointOpened,
        e.Consulted,
        e.CountAsked,
        e.OrderAsked,
        e.OrderDeclined,
        e.OrderLapsed,
        e.Warned,
        e.Forfeited,
        e.PointsDocked,
        e.JudgedLast,
        e.Disqualified,
        e.SwapProposed,
        e.PlacesSwapped,
    }
)


# The deal at one moment


@dataclass(frozen=True, slots=True)
class TableSet:
    """What lies on the table."""

    owner: int
    cards: Cards
    gouji: bool


@dataclass(frozen=True, slots=True)
class WindowView:
    """An open window and who has still to answer."""

    kind: e.WindowKind
    waiting: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SeatView:
    """A seat as everybody sees it; `hand` only when the deal is over (R11.4), `count` only where shown (R11.1)."""

    seat: int
    count: int | None
    place: int
    active: bool
    passed: bool
    headless: bool
    revolted: bool
    failed: bool
    opened: bool
    declared: bool
    parting_gouji_left: int
    hand: Cards | None


@dataclass(frozen=True, slots=True)
class PublicView:
    """The deal as everybody sees it."""

    deal_phase: e.Phase
    turn: int | None
    table: TableSet | None
    window: WindowView | None
    burner: int | None
    victim: int | None
    chaos: bool
    debts: tuple[e.Debt, ...]
    seats: tuple[SeatView, ...]


@dataclass(frozen=True, slots=True)
class SeenHand:
    """A hand that the viewer is shown though it is another seat's (R11.2)."""

    seat: int
    cards: Cards


@dataclass(frozen=True, slots=True)
class PrivateView:
    """What one seat sees beyond that: its hand, hands shown to it by advice, and what it may do now."""

    seat: int
    hand: Cards
    seen: tuple[SeenHand, ...]
    options: tuple[Option, ...]


def public_view(deal: Deal) -> PublicView:
    """What all viewers are shown."""
    trick, window, burn = deal.trick, deal.window, deal.burn
    table = None if trick.owner is None else TableSet(trick.owner, trick.cards, trick.gouji)
    return PublicView(
        deal_phase=deal.phase,
        turn=turn(deal),
        table=table,
        window=None if window is None else WindowView(window.kind, MEMBERS[window.waiting]),
        burner=None if burn is None else burn.burner,
        victim=None if burn is None else burn.victim,
        chaos=deal.standing.chaos,
        debts=deal.debts_left if is_over(deal) else deal.preparation.dues,
        seats=tuple(_seat_view(deal, seat) for seat in SEATS),
    )


def _seat_view(deal: Deal, seat: int) -> SeatView:
    standing, made = deal.standing, deal.points_of
    return SeatView(
        seat=seat,
        count=None if sees(deal, None, seat) == NOTHING else size(deal.hands[seat]),
        place=standing.places[seat],
        active=has(standing.active, seat),
        passed=has(deal.trick.passed, seat) and not standing.chaos,
        headless=has(standing.headless, seat),
        revolted=standing.revolter == seat,
        failed=has(standing.failed, seat),
        opened=has(made.opened, seat),
        declared=has(made.declared, seat),
        parting_gouji_left=standing.parting_gouji[seat],
        hand=deal.hands[seat] if is_over(deal) else None,
    )


def private_view(deal: Deal, seat: int) -> PrivateView:
    """What only this seat is shown."""
    shown = (SeenHand(mate, deal.hands[mate]) for mate in teammates(seat) if sees_hand(deal, seat, mate))
    return PrivateView(seat, deal.hands[seat], tuple(shown), options(deal, seat))
