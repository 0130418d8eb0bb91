"""Burning: who may burn, on what condition, and how a burn ends short of success (R5).

Law: conditions are pure; what is told here leaves the table as it lies. Opening and closing of windows and the covering
set itself are told by `trick.py` and `windows.py`, success by `going_out.py`.
"""

from __future__ import annotations

from engine.rules import going_out
from engine.rules.answering import burners, next_active
from engine.rules.cards import THREE, TWO, Cards, count, jokers, natural_ranks, only_threes, pick
from engine.rules.draft import Draft
from engine.rules.events import BurnEnded, BurnFailed, BurnRelieved
from engine.rules.seats import BIT, NOBODY
from engine.rules.sets import shape, stands_alone
from engine.rules.state import Deal, is_active, is_burner
from engine.rules.variant import BurnCheck, CounterBurn


def counter_burners(deal: Deal) -> int:
    """Whom the window on a burner's set asks (R5.5, R5.7), as a mask."""
    burn = deal.burn
    if burn is None or deal.variant.counter_burn is CounterBurn.NONE:
        return NOBODY
    asked = burners(deal, burn.burner)
    return asked & BIT[burn.victim] if deal.variant.counter_burn is CounterBurn.VICTIM else asked


def keeps_condition(rest: Cards, *, threes_last: bool) -> bool:
    """R5.4: whether a burner with these cards left can go on to the end."""
    ranks = natural_ranks(rest)
    if not threes_last or THREE not in ranks:
        return jokers(rest) >= len(ranks) - 1
    if only_threes(rest):
        return True
    others = len(ranks) - 1
    return jokers(rest) >= (others or min(count(rest, TWO), 1))


def rest_after(deal: Deal, seat: int, wish: Cards) -> Cards:
    """The seat's hand without this set."""
    hand = deal.hands[seat]
    return Cards(hand - pick(hand, wish))


def lead_breaks_condition(deal: Deal, seat: int, wish: Cards) -> bool:
    """Whether a burner's lead has no joker without being his last set, or breaks R5.4 (R5.5)."""
    rest = rest_after(deal, seat, wish)
    if not rest:
        return False
    return not jokers(wish) or not keeps_condition(rest, threes_last=deal.variant.threes_last)


def is_false(deal: Deal, seat: int, wish: Cards) -> bool:
    """R5.8: whether this lead of a bluffing burner fails him."""
    bluffing = deal.variant.burn_check is BurnCheck.BLUFF and is_burner(deal, seat)
    return bluffing and not jokers(wish) and bool(rest_after(deal, seat, wish))


def must_fail(deal: Deal) -> bool:
    """R5.8: whether the burner must lead with no joker and more than one set in hand."""
    if deal.variant.burn_check is not BurnCheck.BLUFF or not is_burner(deal, deal.leader):
        return False
    hand = deal.hands[deal.leader]
    return not jokers(hand) and not is_one_set(hand, threes_last=deal.variant.threes_last)


def is_one_set(hand: Cards, *, threes_last: bool) -> bool:
    """Whether the whole hand can be laid at once."""
    whole = shape(hand)
    return whole is not None and (not threes_last or stands_alone(whole))


def fail(draft: Draft) -> None:
    """R5.8: the burner leaves the deal, the victim leads."""
    burn = draft.deal.burn
    if burn is None:
        return
    draft.tell(BurnFailed(burn.burner))
    victim_leads = is_active(draft.deal, burn.victim)
    leader = burn.victim if victim_leads else _next_but(draft.deal, burn.victim, burn.burner)
    going_out.fail(draft, burn.burner, leader)
    going_out.between_tricks(draft)


def _next_but(deal: Deal, seat: int, leaving: int) -> int | None:
    following = next_active(deal, seat)
    return next_active(deal, leaving) if following == leaving else following


def relieve(draft: Draft, seat: int) -> None:
    """R5.6: a set of the burner is about to be beaten by somebody else."""
    burn = draft.deal.burn
    if burn is not None and burn.burner != seat:
        draft.tell(BurnRelieved(burn.burner, seat))


def end_without_debts(draft: Draft, seat: int) -> None:
    """The burner loses his turn or is judged last (R4.10, R12)."""
    if is_burner(draft.deal, seat):
        draft.tell(BurnEnded(seat))
