"""Card sets: their shape, which beats which, and which are gouji by their cards (R2, R3).

Law: judged by the cards alone. Whose turn it is, who is headless and what lies where belong elsewhere.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from engine.rules.cards import ACE, BIG, NATURALS, SMALL, THREE, TWO, Cards, count
from engine.rules.variant import Comparison, KillBig, Variant

PURE_JOKERS = -1


class CardSet(NamedTuple):
    """The shape of a set (R2.1): its base rank, or `PURE_JOKERS`, and how many of each kind it holds."""

    base: int
    naturals: int
    twos: int
    smalls: int
    bigs: int

    @property
    def rest(self) -> int:
        """The cards that count as the base rank (R2.2)."""
        return self.naturals + self.twos

    @property
    def size(self) -> int:
        """The number of cards."""
        return self.naturals + self.twos + self.smalls + self.bigs

    @property
    def jokers(self) -> int:
        """The number of jokers."""
        return self.smalls + self.bigs

    @property
    def is_dead(self) -> bool:
        """Whether it holds a big joker (R0)."""
        return self.bigs > 0


@lru_cache(maxsize=1 << 16)
def shape(cards: Cards) -> CardSet | None:
    """The shape of these cards, or None when they are no set: empty, or two natural ranks (R2.1)."""
    ranks = [rank for rank in NATURALS if count(cards, rank)]
    if not cards or len(ranks) > 1:
        return None
    twos = count(cards, TWO)
    base = ranks[0] if ranks else TWO if twos else PURE_JOKERS
    naturals = count(cards, base) if ranks else 0
    return CardSet(base, naturals, twos, count(cards, SMALL), count(cards, BIG))


def stands_alone(one: CardSet) -> bool:
    """Whether 3s, if any, have nothing attached (R2.5, R9.1)."""
    return one.base != THREE or one.size == one.naturals


def beats(new: CardSet, table: CardSet, variant: Variant) -> bool:
    """Whether `new` beats `table` (R2.2, R2.3, R2.4)."""
    if _kills_big(new, table, variant):
        return True
    if new.size != table.size:
        return False
    return _higher_everywhere(new, table) or _joker_first(new, table, variant)


def _higher_everywhere(new: CardSet, table: CardSet) -> bool:
    # R2.2 position by position comes down to this, for sets of equal count: nothing is above a big joker, every small
    # joker needs a big one above it, and what is left of the new set must outrank the base.
    if table.bigs or new.bigs < table.smalls:
        return False
    return new.rest == 0 or new.base > table.base


def _joker_first(new: CardSet, table: CardSet, variant: Variant) -> bool:
    return variant.comparison is Comparison.JOKER_FIRST and new.jokers > 0 and table.jokers == 0


def _kills_big(new: CardSet, table: CardSet, variant: Variant) -> bool:
    if variant.kill_big is not KillBig.TWO_BIG or not table.bigs:
        return False
    doubled = new.bigs == 2 * table.bigs and new.size == table.size + table.bigs
    return doubled and _higher_everywhere(new._replace(bigs=0), table._replace(bigs=0))


def can_be_beaten(table: CardSet, variant: Variant) -> bool:
    """Whether anything at all can beat it: a dead set falls only to two big jokers (R2.4, R4.7)."""
    return not table.bigs or variant.kill_big is KillBig.TWO_BIG


def is_gouji(one: CardSet, variant: Variant) -> bool:
    """Whether the set is gouji by its cards (R3.1 to R3.3)."""
    if one.jokers and variant.joker_set_is_gouji:
        return True
    counted = one.rest if variant.twos_count or one.base == TWO else one.naturals
    return any(rank == one.base and counted >= least for rank, least in variant.gouji_minimum)


def is_natural_from_ten(one: CardSet) -> bool:
    """Whether it holds only naturals of ten to ace (R8.2)."""
    return one.size == one.naturals and 7 <= one.base <= ACE
