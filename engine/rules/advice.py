"""What is shown of hands and said about them during play (R11).

Law: who may see, suggest, ask and order; what a viewer is shown in the end is put together in `visibility.py`.
"""

from __future__ import annotations

from engine.rules.cards import NO_CARDS, Cards, size
from engine.rules.draft import Draft
from engine.rules.events import OrderLapsed
from engine.rules.seats import AFTER, team, teammates
from engine.rules.state import Deal, is_active, is_burner
from engine.rules.variant import Advice, Report


def is_short(deal: Deal, seat: int) -> bool:
    """Whether the hand has come down to `report_at` cards."""
    return size(deal.hands[seat]) <= deal.variant.report_at


def sees_by_advice(deal: Deal, viewer: int, seat: int) -> bool:
    """Whether a teammate is shown the hand of this seat (R11.2)."""
    if viewer not in teammates(seat):
        return False
    if deal.variant.advice is Advice.ORDER:
        return deal.advice.ordering == seat
    if deal.variant.advice is Advice.OFF:
        return False
    return is_short(deal, seat) or deal.advice.consulted[seat] == viewer


def count_is_shown(deal: Deal, seat: int) -> bool:
    """Whether everybody is shown the number of cards of this seat (R11.1)."""
    if deal.variant.report is Report.SHOWN:
        return is_short(deal, seat)
    return deal.variant.report is Report.ON_REQUEST and bool(deal.advice.counts_shown >> seat & 1)


def may_consult(deal: Deal, seat: int, teammate: int) -> bool:
    """Once per deal, an active seat may choose a teammate that no longer plays."""
    allowed = deal.variant.advice is Advice.SHOWN and deal.advice.consulted[seat] is None
    return allowed and is_active(deal, seat) and teammate in teammates(seat) and not is_active(deal, teammate)


def may_suggest(deal: Deal, seat: int, to: int) -> bool:
    """Who sees the hand of an active teammate by way of advice may suggest a set."""
    return deal.variant.advice is Advice.SHOWN and is_active(deal, to) and sees_by_advice(deal, seat, to)


def may_ask(deal: Deal) -> bool:
    """Whether numbers of cards are told on request."""
    return deal.variant.report is Report.ON_REQUEST


def may_hand_over(deal: Deal, seat: int) -> bool:
    """A seat that is to lead, once per trick, not while it burns."""
    leads = deal.variant.advice is Advice.ORDER and deal.trick.owner is None
    return leads and not deal.trick.handed_over and not is_burner(deal, seat)


def adviser(deal: Deal, seat: int) -> int:
    """Who orders a hand that is handed over: the next active teammate, if none the next teammate."""
    mates = [other for other in AFTER[seat] if team(other) == team(seat)]
    return next((mate for mate in mates if is_active(deal, mate)), mates[0])


def hand_to_order(deal: Deal) -> Cards:
    """The hand that was handed over."""
    seat = deal.advice.ordering
    return NO_CARDS if seat is None else deal.hands[seat]


def lapse(draft: Draft, seat: int) -> None:
    """The seat's order, if one runs, is over: its set was beaten or its lead lost."""
    if draft.deal.advice.ordering == seat:
        draft.tell(OrderLapsed(seat))


def lapse_when_beaten(draft: Draft, owner: int | None) -> None:
    """A set has been laid on one of this owner's."""
    if owner is not None:
        lapse(draft, owner)
