"""Perft for cards: how many legal action sequences of a given length start from a position.

Law: counts what `decide` accepts, set by set; windows are answered seat by seat in order.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine import rules
from engine.rules import commands as c
from engine.rules import moves
from engine.rules.notation import read_cases
from engine.rules.position import begin
from tests.support.play import PLAIN, fold


def position(text: str) -> rules.Deal:
    """The deal at the start of the first case of a text."""
    return begin(read_cases(text)[0]).deal


def perft(deal: rules.Deal, depth: int) -> int:
    """The number of legal sequences of this many actions."""
    if depth == 0 or rules.is_over(deal):
        return 1
    return sum(perft(after, depth - 1) for after in _successors(deal))


def _successors(deal: rules.Deal) -> Iterator[rules.Deal]:
    seat = rules.waiting(deal)[0]
    for command in _commands(deal, seat):
        events = rules.decide(deal, command)
        if not isinstance(events, rules.Refused):
            yield fold(deal, events)


def _commands(deal: rules.Deal, seat: int) -> Iterator[c.SeatCommand]:
    sets = [moves.cards_of_set(one) for one in moves.all_sets(deal.hands[seat])]
    yield from (c.Lay(seat, cards) for cards in sets)
    yield from (c.Burn(seat, cards) for cards in sets)
    yield from (plain(seat) for plain in PLAIN)
    yield from (c.Buy(seat, rank) for rank in deal.variant.buy)
    yield from (c.Discard(seat, (rank,)) for rank in deal.variant.discard)
