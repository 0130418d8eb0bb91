r"""The house's randomness: seeds, their commitments, shuffles that anybody can recompute.

Law: the only place where chance enters the engine, and the only one that knows how a seed becomes a deck. Everything
but the drawing of a seed is a pure function of documented bytes, so that a played deal can be verified offline.

The scheme, version 1:

* *seed*: 32 bytes from the operating system, drawn before any seat contributes, written as 64 hex digits.
* *commitment*: SHA-256 over `gouji commit 1\n<table>\n<deal>\n<seed>`, where `<table>` is the table's UUID in its
  usual text form, `<deal>` the deal's number in decimal and `<seed>` the hex digits in lower case; ASCII throughout.
* *key*: SHA-256 over `gouji shuffle 1\n<table>\n<deal>\n<seed>\n<c0>\n…\n<c5>`, the contributions by seat, empty
  where a seat gave none.
* *stream*: the blocks SHA-256(key ‖ n) for n = 0, 1, 2 … as 8 bytes, big-endian, read as 32-bit big-endian words.
* *a number below n*: the next word that is below the largest multiple of n not above 2**32, modulo n; other words are
  thrown away.
* *deck*: the full deck of the variant in the order of `full_deck`; for i from its last index down to 1 swap card i with
  card j, a number below i + 1.
* *random seat*: a number below 6, taken from the same stream after the deck.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from engine.match.commands import CommitSeed, StartDeal
from engine.match.events import Faces
from engine.match.state import Match
from engine.rules.dealing import full_deck

SEED_BYTES = 32
_WORDS = 1 << 32


class Shuffle(NamedTuple):
    """What one deal gets of chance."""

    deck: Faces
    random_seat: int


class Dealer:
    """Draws seeds and deals by them. `entropy` returns that many bytes nobody can guess."""

    def __init__(self, entropy: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._entropy = entropy

    def commit(self, table_id: UUID, match: Match) -> CommitSeed:
        """Draw the next deal's seed and bind the house to it."""
        seed = self._entropy(SEED_BYTES).hex()
        return CommitSeed(seed, commitment(table_id, match.deal_number + 1, seed))

    def deal(self, table_id: UUID, match: Match) -> StartDeal:
        """The next deal's shuffle, from the seed and the contributions that the match has kept."""
        made = shuffle(table_id, match.deal_number + 1, match.seed, match.contributions, full_deck(match.variant))
        return StartDeal(made.deck, made.random_seat)

    def draw(self) -> tuple[int, ...]:
        """A random order of the six seats (R1.1)."""
        return _shuffled(range(6), _words(self._entropy(SEED_BYTES)))


def commitment(table_id: UUID, deal: int, seed: str) -> str:
    """The hex digits that bind the house to a seed."""
    return _digest("commit", table_id, deal, seed).hex()


def shuffle(table_id: UUID, deal: int, seed: str, contributions: Sequence[str], deck: Sequence[int]) -> Shuffle:
    """The deck in dealing order and the random seat that follow from a seed and six contributions."""
    words = _words(_digest("shuffle", table_id, deal, seed, *contributions))
    return Shuffle(Faces(_shuffled(deck, words)), _below(6, words))


def _digest(purpose: str, *parts: object) -> bytes:
    return hashlib.sha256("\n".join((f"gouji {purpose} 1", *map(str, parts))).encode()).digest()


def _words(key: bytes) -> Iterator[int]:
    block = 0
    while True:
        drawn = hashlib.sha256(key + block.to_bytes(8, "big")).digest()
        yield from (int.from_bytes(drawn[at : at + 4], "big") for at in range(0, len(drawn), 4))
        block += 1


def _below(limit: int, words: Iterator[int]) -> int:
    fair = _WORDS - _WORDS % limit
    return next(word for word in words if word < fair) % limit


def _shuffled(cards: Sequence[int], words: Iterator[int]) -> tuple[int, ...]:
    deck = list(cards)
    for last in range(len(deck) - 1, 0, -1):
        other = _below(last + 1, words)
        deck[last], deck[other] = deck[other], deck[last]
    return tuple(deck)
