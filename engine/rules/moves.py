"""Which sets a seat may lay (R14.9), and what is done for a seat whose time ran out (R4.11).

Law: nothing is legal by this file; it proposes and lets `legality` judge, or builds only what legality would accept,
which property tests compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from engine.rules import burn, tribute
from engine.rules import commands as c
from engine.rules.cards import BIG, SMALL, THREE, TWO, Cards, cards_of, count, face, natural_ranks, only_threes
from engine.rules.events import Phase, WindowKind
from engine.rules.legality import refusal
from engine.rules.sets import PURE_JOKERS, CardSet, beats, shape, stands_alone
from engine.rules.state import Deal, is_burner, is_last_word, is_opposite_of_owner, turn
from engine.rules.variant import BurnCheck, KillBig

HINTS = 12
"""How many sets a hint list holds at most."""


def cards_of_set(one: CardSet) -> Cards:
    """Cards of this shape, suits left open."""
    natural = [face(one.base)] * one.naturals if one.naturals else []
    return cards_of([*natural, *[face(TWO)] * one.twos, *[face(SMALL)] * one.smalls, *[face(BIG)] * one.bigs])


def all_sets(hand: Cards, sizes: frozenset[int] | None = None) -> Iterator[CardSet]:
    """Every set that the hand can form, each shape once, optionally only of these sizes."""
    held = [(rank, count(hand, rank)) for rank in natural_ranks(hand)]
    for twos, smalls, bigs in product(*(range(count(hand, rank) + 1) for rank in (TWO, SMALL, BIG))):
        extra = twos + smalls + bigs
        if extra and (sizes is None or extra in sizes):
            yield CardSet(TWO if twos else PURE_JOKERS, 0, twos, smalls, bigs)
        wanted = None if sizes is None else [size - extra for size in sizes if size > extra]
        for rank, number in held:
            for naturals in range(1, number + 1) if wanted is None else wanted:
                if naturals <= number:
                    yield CardSet(rank, naturals, twos, smalls, bigs)


def strength_order(one: CardSet) -> tuple[int, ...]:
    """R4.11: fewest cards, then lowest strengths compared high to low, then fewest 2s."""
    strengths = [BIG] * one.bigs + [SMALL] * one.smalls + [one.base] * one.rest
    return (one.size, *strengths, one.twos)


def sets_to_lay(deal: Deal, seat: int) -> list[CardSet]:
    """All sets that the seat may lay now, in the order of R4.11; empty when it may not."""
    if turn(deal) != seat or deal.phase is not Phase.PLAY:
        return []
    found = _leads(deal, seat) if deal.trick.owner is None else _beating(deal, seat)
    return sorted(found, key=strength_order)


def fails(deal: Deal, seat: int, one: CardSet) -> bool:
    """Whether laying this set is allowed but fails a bluffing burner (R5.8, R14.9)."""
    return burn.is_false(deal, seat, cards_of_set(one))


def sets_to_burn_with(deal: Deal, seat: int) -> list[CardSet]:
    """All covering sets that the seat may declare in the open window, in the order of R4.11."""
    if deal.window is None or deal.window.kind not in (WindowKind.BURN, WindowKind.COUNTER):
        return []
    found = (one for one in _beating(deal, seat) if refusal(deal, c.Burn(seat, cards_of_set(one))) is None)
    return sorted(found, key=strength_order)


def _leads(deal: Deal, seat: int) -> Iterator[CardSet]:
    hand = deal.hands[seat]
    strict = is_burner(deal, seat) and deal.variant.burn_check is BurnCheck.STRICT
    for one in _standing(deal, all_sets(hand)):
        if (
            one.base == THREE
            and deal.variant.threes_last
            and not (only_threes(hand) and one.size == count(hand, THREE))
        ):
            continue
        if not strict or not burn.lead_breaks_condition(deal, seat, cards_of_set(one)):
            yield one


def _beating(deal: Deal, seat: int) -> Iterator[CardSet]:
    table = shape(deal.trick.cards)
    if table is None:
        return
    sizes = {table.size}
    if deal.variant.kill_big is KillBig.TWO_BIG:
        sizes.add(table.size + table.bigs)
    hand = deal.hands[seat]
    for one in _standing(deal, all_sets(hand, frozenset(sizes))):
        threes = one.base == THREE and deal.variant.threes_last
        if not threes and beats(one, table, deal.variant):
            yield one


def _standing(deal: Deal, sets: Iterator[CardSet]) -> Iterator[CardSet]:
    return (one for one in sets if not deal.variant.threes_last or stands_alone(one))


# When time runs out (R4.11)


def stand_in(deal: Deal, seat: int) -> c.Command:
    """What the house does for a seat whose time ran out."""
    if deal.window is not None:
        return _NO[deal.window.kind](seat)
    if deal.phase is Phase.BUY and deal.preparation.offer is not None:
        rank = deal.preparation.offer[1]
        return c.Buy(seat, rank) if rank == THREE else c.No(seat)
    if deal.phase is Phase.TRIBUTE:
        return c.Return(seat, tribute.lowest_that_fits(deal))
    if deal.phase is Phase.DISCARD:
        return c.Keep(seat)
    return c.Lay(seat, smallest_lead(deal, seat)) if deal.trick.owner is None else c.Pass(seat)


_NO: dict[WindowKind, Callable[[int], c.Command]] = {
    WindowKind.BURN: c.Decline,
    WindowKind.COUNTER: c.Decline,
    WindowKind.ORDER: c.Decline,
    WindowKind.REVOLUTION: c.Stay,
    WindowKind.DECLARE: c.Silent,
    WindowKind.WINDFALL: c.Refuse,
}


def smallest_lead(deal: Deal, seat: int) -> Cards:
    """The smallest legal set; a burner's the smallest that keeps R5.4, else the smallest with a joker."""
    hand = deal.hands[seat]
    if not is_burner(deal, seat):
        return _smallest_single(deal, hand)
    leads = sorted(_leads(deal, seat), key=strength_order)
    keeping = (one for one in leads if not burn.lead_breaks_condition(deal, seat, cards_of_set(one)))
    with_joker = (one for one in leads if one.jokers)
    chosen = next(keeping, None) or next(with_joker, None) or leads[0]
    return cards_of_set(chosen)


def _smallest_single(deal: Deal, hand: Cards) -> Cards:
    if deal.variant.threes_last and only_threes(hand):
        return hand
    first = 1 if deal.variant.threes_last else 0
    lowest = next(rank for rank in range(first, 15) if count(hand, rank))
    return cards_of([face(lowest)])


def can_only_cover(deal: Deal, seat: int) -> bool:
    """Whether the seat's no is a cover (R4.4)."""
    return is_opposite_of_owner(deal, seat) and is_last_word(deal, seat)
