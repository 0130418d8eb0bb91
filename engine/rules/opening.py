"""Opening a point (R8.1 to R8.3, R7.5).

Law: told after a set or a trick, from the deal as it was before; declaring is a window (`windows.py`), the tribute it
costs is scored in `scoring.py`.
"""

from __future__ import annotations

from engine.rules.cards import FOUR, Cards, count, only, size
from engine.rules.draft import Draft
from engine.rules.events import FoursDue, OpeningLost, Phase, PointOpened
from engine.rules.seats import has, opposite
from engine.rules.sets import CardSet, is_natural_from_ten, shape
from engine.rules.state import Deal, is_active, is_burner
from engine.rules.variant import Opening


def after_set(draft: Draft, before: Deal, seat: int, laid: CardSet) -> None:
    """What a set does to the right of sending fours (R8.2)."""
    if before.variant.opening is not Opening.SEND_FOURS or _is_settled(before, seat):
        return
    leads = before.trick.owner is None and not is_burner(before, seat)
    if leads and has(before.points_of.fours_due, seat):
        sent = laid.base == FOUR and laid.size == laid.naturals == count(before.hands[seat], FOUR)
        draft.tell(PointOpened(seat) if sent else OpeningLost(seat))
    elif laid.base == FOUR:
        draft.tell(OpeningLost(seat))


def _is_settled(deal: Deal, seat: int) -> bool:
    return has(deal.points_of.opened | deal.points_of.lost, seat)


def after_trick(draft: Draft, before: Deal, owner: int) -> None:
    """What winning a trick does; `before` is the deal while the winning set lay on the table (R8.1, R8.2)."""
    if before.variant.opening is Opening.OFF or _is_settled(draft.deal, owner) or not _wins_the_point(before, owner):
        return
    if before.variant.opening is Opening.CHARTER:
        draft.tell(PointOpened(owner))
    elif before.burn is None:
        _send_fours_next(draft, before, owner)


def _wins_the_point(deal: Deal, owner: int) -> bool:
    laid = shape(deal.trick.cards)
    if laid is None or laid.is_dead or not deal.trick.gouji or has(deal.trick.parting_laid, owner):
        return False
    return deal.standing.revolter != opposite(owner) and _is_in_time(deal, owner)


def _is_in_time(deal: Deal, owner: int) -> bool:
    """R8.1: first place and opposite until the first place goes out, the others until the second does.

    A last set that wins its trick counts for its owner, though he has gone out with it.
    """
    gone = deal.standing.gone
    if owner == opposite(gone[0]) if gone else False:
        return False
    if owner in gone:
        return deal.standing.places[owner] <= 2
    return len(gone) < 2


def _send_fours_next(draft: Draft, before: Deal, owner: int) -> None:
    laid = shape(before.trick.cards)
    if laid is None or not is_natural_from_ten(laid) or has(before.points_of.fours_due, owner):
        return
    if not is_active(before, owner) or not fours(before, owner):
        draft.tell(OpeningLost(owner))
    else:
        draft.tell(FoursDue(owner))


def fours(deal: Deal, seat: int) -> int:
    """How many 4s the seat holds."""
    return size(Cards(only(deal.hands[seat], FOUR)))


def after_parting_gouji(draft: Draft, seat: int, *, used_last: bool) -> None:
    """R7.5: the revolter's opposite opens by laying the third of his parting gouji before the second place is taken."""
    deal = draft.deal
    if deal.variant.opening is Opening.OFF or deal.standing.revolter != opposite(seat) or not used_last:
        return
    if 2 not in deal.standing.places and not has(deal.points_of.opened, seat) and deal.phase is Phase.PLAY:
        draft.tell(PointOpened(seat))
