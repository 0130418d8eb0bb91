"""Cards as values: ranks, faces, and `Cards`, a multiset of faces packed into one integer.

Law: here lives what a card is and how cards are written (rules.md R0), nothing about sets, seats or turns.
A face is `rank * 4 + suit`; the jokers use suit 0. `Cards` holds a five-bit count for each face, so that adding and
taking cards is integer addition and subtraction and no hand is ever copied card by card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import repeat
from typing import NewType

Cards = NewType("Cards", int)

LETTERS = "3456789TJQKA2sb"
SUITS = "SHDC"
THREE, FOUR, TEN, ACE, TWO, SMALL, BIG = 0, 1, 7, 11, 12, 13, 14
RANKS = range(15)
NATURALS = range(12)
NO_CARDS = Cards(0)

_BITS = 5
_RANK_BITS = 4 * _BITS
_FIELD = (1 << _BITS) - 1
_RANK_FIELD = (1 << _RANK_BITS) - 1
_SUM = sum(1 << (_BITS * suit) for suit in range(4))
_SUM_SHIFT = 3 * _BITS
_SUIT_SHIFTS = tuple(_BITS * suit for suit in range(4))


class NotCards(ValueError):
    """The text is not written in card letters (rules.md R0)."""


def face(rank: int, suit: int = 0) -> int:
    """The face of a natural or two of this suit, or of a joker."""
    return rank * 4 + (suit if rank < SMALL else 0)


def rank_of(one: int) -> int:
    """The rank 0 (three) to 14 (big joker) of a face."""
    return one >> 2


def cards_of(faces: Iterable[int]) -> Cards:
    """The multiset of these faces."""
    return Cards(sum(1 << (_BITS * one) for one in faces))


def faces_of(cards: Cards) -> Iterator[int]:
    """Every face as often as it is held, lowest rank first, suits in the order S H D C."""
    rest = int(cards)
    while rest:
        one = ((rest & -rest).bit_length() - 1) // _BITS
        field = (rest >> (_BITS * one)) & _FIELD
        yield from repeat(one, field)
        rest ^= field << (_BITS * one)


def count(cards: Cards, rank: int) -> int:
    """How many cards of this rank are held, whatever the suit."""
    # A multiplication adds the four suit fields into the topmost one.
    return ((((cards >> (_RANK_BITS * rank)) & _RANK_FIELD) * _SUM) >> _SUM_SHIFT) & _FIELD


def suit_count(cards: Cards, one: int) -> int:
    """How many cards of exactly this face are held."""
    return (cards >> (_BITS * one)) & _FIELD


def only(cards: Cards, rank: int) -> Cards:
    """The cards of this rank, with their suits."""
    return Cards(cards & (_RANK_FIELD << (_RANK_BITS * rank)))


@lru_cache(maxsize=1 << 12)
def size(cards: Cards) -> int:
    """The number of cards."""
    total, rest = 0, int(cards)
    while rest:
        total += (((rest & _RANK_FIELD) * _SUM) >> _SUM_SHIFT) & _FIELD
        rest >>= _RANK_BITS
    return total


def natural_ranks(hand: Cards) -> tuple[int, ...]:
    """The distinct natural ranks 3 to A that are held."""
    return tuple(rank for rank in NATURALS if hand >> (_RANK_BITS * rank) & _RANK_FIELD)


def jokers(hand: Cards) -> int:
    """The number of jokers."""
    return count(hand, SMALL) + count(hand, BIG)


def only_threes(hand: Cards) -> bool:
    """Whether 3s are held and nothing else."""
    return hand != 0 and hand >> _RANK_BITS == 0


def holds(hand: Cards, wanted: Cards) -> bool:
    """Whether the hand has at least as many of every rank; suits do not matter (R0)."""
    rest, rank = int(wanted), 0
    while rest:
        if rest & _RANK_FIELD and count(wanted, rank) > count(hand, rank):
            return False
        rest >>= _RANK_BITS
        rank += 1
    return True


def pick(hand: Cards, wanted: Cards) -> Cards:
    """The faces of the hand that answer a wish by rank: the suits wished for where held, else the first of S H D C.

    The hand must hold the wish (`holds`).
    """
    picked, rest, shift = 0, int(wanted), 0
    while rest:
        if wish := rest & _RANK_FIELD:
            picked += _pick_rank((hand >> shift) & _RANK_FIELD, wish) << shift
        rest >>= _RANK_BITS
        shift += _RANK_BITS
    return Cards(picked)


def _pick_rank(held: int, wish: int) -> int:
    """The same within one rank: four suit fields out of four."""
    picked = missing = 0
    for shift in _SUIT_SHIFTS:
        wished = (wish >> shift) & _FIELD
        exact = min(wished, (held >> shift) & _FIELD)
        picked += exact << shift
        missing += wished - exact
    for shift in _SUIT_SHIFTS if missing else ():
        others = min(missing, ((held - picked) >> shift) & _FIELD)
        picked += others << shift
        missing -= others
    return picked


def parse_faces(text: str) -> tuple[int, ...]:
    """The faces written in this text, in its order.

    A letter without a suit gets the suits S H D C in rotation, counted by rank. Blanks are ignored. Raises `NotCards`
    for any other character, for a suit without a card, for a suit on a joker and for over 31 cards of a rank, more than
    any deck holds and all that a field can count.
    """
    found: list[int] = []
    plain = [0] * 15
    letters = "".join(text.split())
    at = 0
    while at < len(letters):
        rank = LETTERS.find(letters[at])
        if rank < 0:
            raise NotCards(f"{letters[at]!r} is not a card letter")
        at += 1
        suit = SUITS.find(letters[at]) if at < len(letters) else -1
        if suit >= 0:
            if rank >= SMALL:
                raise NotCards("a joker has no suit")
            at += 1
        else:
            suit = plain[rank] % 4
            plain[rank] += 1
        found.append(face(rank, suit))
    if any(number > _FIELD for number in Counter(map(rank_of, found)).values()):
        raise NotCards("more cards of a rank than any deck holds")
    return tuple(found)


def parse(text: str) -> Cards:
    """The cards written in this text; see `parse_faces`."""
    return cards_of(parse_faces(text))


def face_text(one: int) -> str:
    """A face as rank and suit (`TS`), a joker as its letter alone."""
    rank = rank_of(one)
    return LETTERS[rank] + (SUITS[one & 3] if rank < SMALL else "")


def faces_text(faces: Iterable[int]) -> str:
    """Faces in the order given, with suits: `TS9Hs`."""
    return "".join(face_text(one) for one in faces)


@lru_cache(maxsize=1 << 12)
def text(cards: Cards) -> str:
    """The cards with their suits, highest rank first: `bTS9H`."""
    return faces_text(reversed(tuple(faces_of(cards))))


def letters(cards: Cards) -> str:
    """The cards by letters alone, highest rank first: `ss999`."""
    return "".join(LETTERS[rank] * count(cards, rank) for rank in reversed(RANKS))
