"""The deck, the cut, who draws first and who leads first (R1.2 to R1.5, R1.7).

Law: everything follows from the order of the cards and the random seat in `Setup`; nothing is random here.
"""

from __future__ import annotations

from engine.rules.cards import ACE, NATURALS, RANKS, SMALL, THREE, TWO, Cards, cards_of, face, rank_of
from engine.rules.events import CardsDealt
from engine.rules.scoring import is_sweep
from engine.rules.state import Setup
from engine.rules.variant import FirstLead, NextLead, Variant

PACKS = 4
_NUMBER = {ACE: 1, TWO: 2, **{rank: rank + 3 for rank in NATURALS if rank < ACE}}
"""R1.3: the natural number of a cut card; a joker has none."""


def full_deck(variant: Variant) -> tuple[int, ...]:
    """All faces of the deck, unshuffled: four packs without the cards that the variant removes (R1.2)."""
    removed = dict(variant.deck)
    faces: list[int] = []
    for rank in RANKS:
        suits = 1 if rank >= SMALL else 4
        ordered = [face(rank, number % suits) for number in range(PACKS * suits)]
        faces += ordered[removed.get(rank, 0) :]
    return tuple(faces)


def deal(setup: Setup) -> CardsDealt:
    """The six hands, one card at a time in order of play from the first drawer (R1.3)."""
    cutter, first_drawer = _first_drawer(setup)
    order = [(first_drawer + step) % 6 for step in range(6)]
    hands: list[Cards] = [Cards(0)] * 6
    for step, seat in enumerate(order):
        hands[seat] = cards_of(setup.deck[step::6])
    return CardsDealt(tuple(hands), cutter, first_drawer, _leader(setup, first_drawer))


def is_reopened(setup: Setup) -> bool:
    """Whether a later deal begins with a re-opening cut: after a sweep, or when two seats changed hands (R1.3)."""
    return bool(setup.places) and (is_sweep(setup.places) or len(set(setup.changed)) >= 2)


def _first_drawer(setup: Setup) -> tuple[int | None, int]:
    """The cutter, if anybody has cut yet, and the first drawer."""
    if setup.first_drawer is not None:
        return setup.cutter, setup.first_drawer
    if not setup.places:
        return _cut(setup.deck, 0)
    if is_reopened(setup) or setup.variant.next_lead is NextLead.ROTATE:
        return _cut(setup.deck, 0 if setup.cutter is None else (setup.cutter + 1) % 6)
    return setup.cutter, setup.places[5]


def _cut(deck: tuple[int, ...], seat: int) -> tuple[int, int]:
    """A joker voids the right of the cutter, and the next seat cuts with the next card (R1.3)."""
    for step, one in enumerate(deck):
        rank = rank_of(one)
        if rank < SMALL:
            cutter = (seat + step) % 6
            return cutter, (cutter + _NUMBER[rank] - 1) % 6
    return 0, 0


def _leader(setup: Setup, first_drawer: int) -> int:
    """Who leads the first trick (R1.4, R1.5)."""
    later = bool(setup.places) and not is_reopened(setup)
    if later and setup.variant.next_lead is NextLead.LAST:
        return setup.places[5]
    if later and setup.variant.next_lead is NextLead.ROTATE:
        return first_drawer
    return _first_leader(setup, first_drawer)


def _first_leader(setup: Setup, first_drawer: int) -> int:
    if setup.variant.first_lead is FirstLead.RANDOM:
        return setup.random_seat
    if setup.variant.first_lead is FirstLead.FIRST_DRAWER:
        return first_drawer
    return shows_threes(setup.deck, first_drawer)


def shows_threes(deck: tuple[int, ...], first_drawer: int) -> int:
    """R1.4: the first to hold two 3s of a suit, until somebody holds strictly more than the leader has shown."""
    held: dict[tuple[int, int], int] = {}
    leader, shown = first_drawer, 1
    for step, one in enumerate(deck):
        if rank_of(one) != THREE:
            continue
        seat = (first_drawer + step) % 6
        held[seat, one] = held.get((seat, one), 0) + 1
        if held[seat, one] > shown:
            leader, shown = seat, held[seat, one]
    return leader
