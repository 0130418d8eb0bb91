"""Windows: several seats are asked at once, answer secretly, and the answers take effect when all have answered (R11.3).

Law: each kind of window has one function that tells what its answers bring about. Who is asked is decided where the
window is opened.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.rules import advice, course, trick
from engine.rules.cards import NO_CARDS, Cards
from engine.rules.draft import Draft
from engine.rules.events import (
    Answered,
    BurnCountered,
    BurnDeclared,
    BurnStarted,
    DealVoided,
    DebtLapsed,
    Declared,
    OrderDeclined,
    OrderGiven,
    Passed,
    Phase,
    PointOpened,
    Revolted,
    WindfallGranted,
    WindfallRefused,
    WindowClosed,
    WindowKind,
)
from engine.rules.seats import MEMBERS, from_seat, team
from engine.rules.state import Deal, Window, is_active
from engine.rules.variant import Opening

PARTING_GOUJI_OF_A_REVOLUTION = 3
"""R7.4."""


def answer(draft: Draft, seat: int, *, yes: bool, cards: Cards = NO_CARDS) -> None:
    """One seat answers; the last answer closes the window."""
    draft.tell(Answered(seat, yes, cards or None))
    close_if_answered(draft)


def close_if_answered(draft: Draft) -> None:
    """Close the window when nobody is waited for, and let the answers take effect."""
    window = draft.deal.window
    if window is None or window.waiting:
        return
    draft.tell(WindowClosed(window.kind))
    _EFFECTS[window.kind](draft, window)


# Burning (R5.1, R5.2, R5.7)


def _burn(draft: Draft, window: Window) -> None:
    declared = MEMBERS[window.yes]
    for seat in declared:
        draft.tell(BurnDeclared(seat))
    if draft.deal.variant.decline_is_pass:
        for seat in MEMBERS[window.asked & ~window.yes]:
            draft.tell(Passed(seat, draft.deal.trick.answers))
    owner = draft.deal.trick.owner
    if declared and owner is not None:
        _cover(draft, _first_to_burn(owner, declared), owner, window)
    trick.settle(draft)


def _first_to_burn(owner: int, declared: tuple[int, ...]) -> int:
    """R5.2: the owner's teammates in order of play, then the others."""
    order = [seat for seat in from_seat(owner) if seat in declared]
    return min(order, key=lambda seat: team(seat) != team(owner))


def _cover(draft: Draft, burner: int, victim: int, window: Window) -> None:
    running = draft.deal.burn
    if running is not None:
        draft.tell(BurnCountered(running.burner, burner))
    draft.tell(BurnStarted(burner, victim, running is not None))
    trick.lay_set(draft, burner, window.cards[burner])


# Revolution, R7


def _revolution(draft: Draft, window: Window) -> None:
    revolters = MEMBERS[window.yes]
    if len(revolters) > 1:
        draft.tell(DealVoided(revolters, draft.deal.preparation.dealt))
        return
    for seat in revolters:
        _revolt(draft, seat)
    course.go_on(draft, Phase.REVOLUTION)


def _revolt(draft: Draft, seat: int) -> None:
    draft.tell(Revolted(seat, 4, PARTING_GOUJI_OF_A_REVOLUTION))
    for due in draft.deal.preparation.dues:
        if seat in (due.payer, due.payee):
            draft.tell(DebtLapsed(*due))
    if draft.deal.variant.threes_last and draft.deal.variant.opening is not Opening.OFF:
        draft.tell(PointOpened(seat))


# Declaring (R8.4)


def _declare(draft: Draft, window: Window) -> None:
    before_deal = draft.deal.phase is Phase.DEAL
    for seat in MEMBERS[window.yes]:
        draft.tell(Declared(seat, before_deal))
    if before_deal:
        course.deal_cards(draft)
    else:
        course.go_on(draft, Phase.DECLARE)


# Windfall application (R6.6)


def _windfall(draft: Draft, window: Window) -> None:
    seat = draft.deal.trick.applied
    if seat is None:
        return
    if _is_granted(draft.deal, window, seat):
        draft.tell(WindfallGranted(seat))
        trick.end_trick(draft, leader=seat)
    else:
        draft.tell(WindfallRefused(seat))
    trick.settle(draft)


def _is_granted(deal: Deal, window: Window, applicant: int) -> bool:
    return window.yes == window.asked and is_active(deal, applicant)


# Handing over the order (R11.2)


def give_order(draft: Draft, seat: int, sets: tuple[Cards, ...]) -> None:
    """The teammate orders the whole hand, which is led from now on."""
    to = draft.deal.advice.ordering
    if to is None:
        return
    draft.tell(Answered(seat, yes=True, cards=None))
    draft.tell(WindowClosed(WindowKind.ORDER))
    draft.tell(OrderGiven(seat, to, sets))
    trick.settle(draft)


def forget_order(draft: Draft, seat: int) -> None:
    """A seat leaves whose order is asked for or led: nobody is asked any longer and nothing is led (R12)."""
    window = draft.deal.window
    if draft.deal.advice.ordering == seat and window is not None and window.kind is WindowKind.ORDER:
        draft.tell(WindowClosed(WindowKind.ORDER))
    advice.lapse(draft, seat)


def _order(draft: Draft, window: Window) -> None:
    to = draft.deal.advice.ordering
    if to is not None:
        draft.tell(OrderDeclined(next(iter(MEMBERS[window.asked]), to), to))
    trick.settle(draft)


_EFFECTS: dict[WindowKind, Callable[[Draft, Window], None]] = {
    WindowKind.BURN: _burn,
    WindowKind.COUNTER: _burn,
    WindowKind.REVOLUTION: _revolution,
    WindowKind.DECLARE: _declare,
    WindowKind.WINDFALL: _windfall,
    WindowKind.ORDER: _order,
}
