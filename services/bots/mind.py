"""How a house player chooses among what its view offers.

Law: pure; all it knows is the sight, and the chance that it is given. It plays plainly: small sets first, beats what is
cheap to beat, keeps jokers and twos for the end, and says no in windows unless it feels lucky. Never a rule: what is not
on offer is not considered, so a mind cannot disagree with the engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from services.bots.sight import LETTERS, Choice, Option, Sight

BURN_CHANCE = 0.2
WILD_CHANCE = 0.25
"""How often a joker or two is spent on beating a set."""

SHORT_HAND = 10
"""From so few cards down everything is spent."""

_TWO = LETTERS.index("2")

Think = Callable[[Option, Sight, random.Random], Choice | None]


def choices(sight: Sight, chance: random.Random) -> Iterable[Choice]:
    """What the player would do, best first; nothing when the view asks for nothing."""
    offered = {option.kind: option for option in sight.options}
    for kind, think in _THOUGHTS:
        if (option := offered.get(kind)) and (choice := think(option, sight, chance)):
            yield choice
    yield from _whatever(offered.values())


def choose(sight: Sight, chance: random.Random, refused: AbstractSet[Choice] = frozenset()) -> Choice | None:
    """The best choice that has not been refused at this version."""
    return next((choice for choice in choices(sight, chance) if choice not in refused), None)


def ranks(cards: str) -> list[int]:
    """The ranks of a set written in card letters, suits left out."""
    return [LETTERS.index(letter) for letter in cards if letter in LETTERS]


def cost(cards: str) -> tuple[int, int, int]:
    """How dear a set is: wild cards first, then its rank; of equals the larger set is cheaper."""
    held = ranks(cards)
    wild = sum(4 if rank > _TWO else 1 for rank in held if rank >= _TWO)
    return wild, min(held, default=0), -len(held)


def _burn(option: Option, _: Sight, chance: random.Random) -> Choice | None:
    return Choice("BURN", cards=option.hints[0]) if option.hints and chance.random() < BURN_CHANCE else None


def _lay(option: Option, sight: Sight, chance: random.Random) -> Choice | None:
    if not option.hints:
        return None
    cheapest = Choice("LAY", cards=min(option.hints, key=cost))
    return cheapest if _is_worth_it(cheapest.cards, sight, chance) else None


def _is_worth_it(cards: str, sight: Sight, chance: random.Random) -> bool:
    """A lead always; over a teammate's set only to go out; else what costs nothing wild, or everything near the end."""
    held = len(ranks(sight.hand))
    if sight.owner is None or len(ranks(cards)) == held:
        return True
    if (sight.owner - sight.seat) % 2 == 0:
        return False
    return cost(cards)[0] == 0 or held <= SHORT_HAND or chance.random() < WILD_CHANCE


def _plainly(option: Option, _: Sight, __: random.Random) -> Choice:
    return Choice(option.kind)


def _cards(option: Option, _: Sight, __: random.Random) -> Choice | None:
    return Choice(option.kind, cards=option.hints[0]) if option.hints else None


def _rank(option: Option, _: Sight, __: random.Random) -> Choice | None:
    return Choice(option.kind, ranks=option.hints[0]) if option.hints else None


_THOUGHTS: tuple[tuple[str, Think], ...] = (
    ("STAY", _plainly),
    ("SILENT", _plainly),
    ("KEEP", _plainly),
    ("BUY", _rank),
    ("NO", _plainly),
    ("RETURN", _cards),
    ("BURN", _burn),
    ("DECLINE", _plainly),
    ("REFUSE", _plainly),
    ("LAY", _lay),
    ("PASS", _plainly),
    ("COVER", _plainly),
)
"""In the order of preference; kinds that are not here (advice, questions, swaps) are never needed to go on."""


def _whatever(offered: Iterable[Option]) -> Iterable[Choice]:
    """When all else was refused: any set on offer, cheapest first."""
    for option in offered:
        if option.kind in {"LAY", "RETURN"}:
            yield from (Choice(option.kind, cards=hint) for hint in sorted(option.hints, key=cost))
