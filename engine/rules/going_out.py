"""Leaving the deal and what it changes: places, parting gouji, headless, chaos, the end (R5.8, R5.9, R6, R7.3, R9.7).

Law: told in the order in which a player would tell it. Changes to headless and chaos happen only between two tricks with
no burn running (`between_tricks`).
"""

from __future__ import annotations

from engine.rules import opening, scoring
from engine.rules.answering import without
from engine.rules.cards import only_threes
from engine.rules.draft import Draft
from engine.rules.events import (
    BecameHeadless,
    BurnSucceeded,
    ChaosBegan,
    DealEnded,
    Failed,
    PartingGoujiLaid,
    Phase,
    RevolterPromoted,
    Smothered,
    WentOut,
)
from engine.rules.seats import BIT, MEMBERS, SEATS, TEAMS, has, opposite, teammates
from engine.rules.state import Deal, free_places, is_active, is_burner, is_headless
from engine.rules.variant import DebtKind, PartingGouji, PlayOut


def go_out(draft: Draft, seat: int) -> None:
    """If the hand is empty, the seat takes its place (R6.1), and what follows at once."""
    deal = draft.deal
    if deal.hands[seat]:
        return
    draft.tell(_last_set(deal, seat))
    if deal.burn is not None and is_burner(deal, seat):
        amount = scoring.burn_amount(deal.variant, counter=deal.burn.counter)
        draft.tell(BurnSucceeded(seat, deal.burn.victim, amount))
    _promote_revolter(draft)
    end_if_over(draft)


def _last_set(deal: Deal, seat: int) -> WentOut:
    place = free_places(deal)[0]
    closes = place <= 2 and not deal.standing.chaos
    right = deal.variant.parting_gouji
    parting = closes and right is not PartingGouji.NONE and is_active(deal, opposite(seat))
    return WentOut(seat, place, closes, parting, parting and right is PartingGouji.ONCE)


def foresee_last_set(deal: Deal, seat: int) -> Deal:
    """The deal as if the seat had gone out already: who may answer its last set depends on it (R6.3)."""
    out = _last_set(deal, seat)
    if not out.closes:
        return deal
    across = BIT[opposite(seat)]
    trick = deal.trick
    parting = trick.parting | across if out.parting else trick.parting
    return deal._replace(trick=trick._replace(closed=True, exempt=trick.exempt | across, parting=parting))


def _promote_revolter(draft: Draft) -> None:
    """R7.3: third, from the moment his teammates are first and second."""
    standing = draft.deal.standing
    seat = standing.revolter
    if seat is None:
        return
    mates = {standing.places[mate] for mate in teammates(seat)}
    if mates == {1, 2} and 3 in free_places(draft.deal):
        draft.tell(RevolterPromoted(seat, 3))


def end_if_over(draft: Draft) -> None:
    """R6.8."""
    deal = draft.deal
    if deal.phase is Phase.PLAY and is_decided(deal):
        draft.tell(deal_ended(deal))


def is_decided(deal: Deal) -> bool:
    """Whether a team is out (`side_out`), or five places are taken (`five_out`)."""
    if deal.variant.play_out is PlayOut.FIVE_OUT:
        return len(free_places(deal)) <= 1
    return any(not deal.standing.active & team for team in TEAMS)


def deal_ended(deal: Deal) -> DealEnded:
    """The places, points and debts of a decided deal."""
    places = scoring.final_places(deal)
    even, odd = scoring.points(places, deal.variant)
    return DealEnded(places, even, odd, scoring.debts(deal, places))


def fail(draft: Draft, seat: int, leader: int | None = None) -> None:
    """The seat leaves the deal with the lowest free place (R5.8, R9.7, R12); `leader` leads instead of it."""
    deal = draft.deal
    draft.tell(Failed(seat, free_places(deal)[-1], without(deal.trick.answers, seat), leader))
    end_if_over(draft)


# Smothering (R9.7)


def _smothered_seat(before: Deal, by: int) -> int | None:
    """Who is smothered if `by` beats what lay on the table before."""
    owner = before.trick.owner
    if not before.variant.threes_last or owner is None or owner == by or not is_active(before, owner):
        return None
    return owner if only_threes(before.hands[owner]) else None


def smother(draft: Draft, before: Deal, by: int) -> None:
    """The set that left its owner only 3s has been beaten (R9.7)."""
    seat = _smothered_seat(before, by)
    if seat is not None:
        draft.tell(Smothered(seat, by, scoring.owed_amount(before.variant, DebtKind.SMOTHER)))


def fail_smothered(draft: Draft, before: Deal, by: int) -> None:
    """With `smother_is_last` the smothered seat fails, if the deal still runs (R9.7)."""
    seat = _smothered_seat(before, by)
    if seat is not None and before.variant.smother_is_last and draft.deal.phase is Phase.PLAY:
        fail(draft, seat)


# Parting gouji (R6.3, R7.4)


def is_parting_gouji(deal: Deal, seat: int) -> bool:
    """Whether a gouji set that the seat lays now is a parting gouji."""
    trick, standing = deal.trick, deal.standing
    if standing.revolter == opposite(seat):
        return has(trick.parting_laid, seat) or standing.parting_gouji[seat] > 0
    if is_burner(deal, seat):
        return False
    if trick.owner is not None and has(trick.parting, seat):
        return True
    return has(trick.parting_laid, seat) or standing.parting_gouji[seat] > 0


def lay_parting_gouji(draft: Draft, seat: int) -> None:
    """A parting gouji lies on the table; a trick uses up one at most (R7.4)."""
    deal = draft.deal
    left = deal.standing.parting_gouji[seat]
    first = not has(deal.trick.parting_laid, seat)
    draft.tell(PartingGoujiLaid(seat, max(left - 1, 0) if first else left))
    opening.after_parting_gouji(draft, seat, used_last=first and left == 1)


# Between two tricks (R6.4, R6.5, R6.7)


def between_tricks(draft: Draft) -> None:
    """Chaos and headlessness that are due, unless a burn is running (R6.7)."""
    if draft.deal.burn is not None or draft.deal.phase is not Phase.PLAY:
        return
    if not draft.deal.standing.chaos and _seats_gone(draft.deal) >= draft.deal.variant.chaos_after:
        draft.tell(ChaosBegan())
    for seat in SEATS:
        if _loses_its_head(draft.deal, seat):
            draft.tell(BecameHeadless(seat))


def _seats_gone(deal: Deal) -> int:
    counted = deal.variant.revolution_counts_for_chaos and deal.standing.revolter is not None
    return len(deal.standing.gone) + counted


def _loses_its_head(deal: Deal, seat: int) -> bool:
    """R6.4 and R7.4: whether the seat is without opposite from now on."""
    standing, across = deal.standing, opposite(seat)
    if not is_active(deal, seat) or is_headless(deal, seat) or standing.parting_gouji[seat]:
        return False
    return across == standing.revolter or standing.places[across] == 1 or has(standing.failed, across)


def headless_seats(deal: Deal) -> tuple[int, ...]:
    """The active seats without opposite."""
    return MEMBERS[deal.standing.headless & deal.standing.active]
