"""The complete list of what a seat may do now (R14.9), as a client without rules asks for it.

Law: spells out each option of `options.py`; decides nothing. Two kinds stay open, because what fills them in is a choice
among too many: the cards of a suggestion and the sets of an order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

from engine.rules import buying, moves, tribute
from engine.rules.cards import LETTERS, letters
from engine.rules.options import ActionKind, Option, options
from engine.rules.state import Deal

MOST = 8192
"""How many moves a list holds at most; the sets of a hand are 5,624 at most: 14 naturals, 14 twos and all eight jokers."""


@dataclass(frozen=True, slots=True)
class Action:
    """What a seat asks for, in letters: sets and returns in `cards`, what is bought or discarded in `ranks`."""

    kind: ActionKind
    cards: str = ""
    ranks: str = ""
    seat: int | None = None


@dataclass(frozen=True, slots=True)
class LegalMove:
    """An action that would be accepted; `fails`: it is a bluffing burner's lead that fails him (R5.8)."""

    action: Action
    fails: bool = False


@dataclass(frozen=True, slots=True)
class LegalMoves:
    """All that a seat may do, kind by kind as in `options`; `truncated`: there are more moves than listed."""

    options: tuple[Option, ...] = ()
    moves: tuple[LegalMove, ...] = ()
    truncated: bool = False


def legal_moves(deal: Deal, seat: int, most: int = MOST) -> LegalMoves:
    """List everything the seat may do now, `most` moves at the utmost; sets and returns in the order of R4.11."""
    offered = options(deal, seat)
    every = (move for option in offered for move in _moves(deal, seat, option))
    listed = tuple(islice(every, most))
    return LegalMoves(offered, listed, next(every, None) is not None)


def _moves(deal: Deal, seat: int, option: Option) -> Iterator[LegalMove]:
    if option.kind is ActionKind.LAY:
        return _leads_and_answers(deal, seat)
    return (LegalMove(action) for action in _actions(deal, seat, option))


def _leads_and_answers(deal: Deal, seat: int) -> Iterator[LegalMove]:
    for one in moves.sets_to_lay(deal, seat):
        action = Action(ActionKind.LAY, letters(moves.cards_of_set(one)))
        yield LegalMove(action, moves.fails(deal, seat, one))


def _actions(deal: Deal, seat: int, option: Option) -> Iterator[Action]:
    kind = option.kind
    match kind:
        case ActionKind.BURN:
            sets = moves.sets_to_burn_with(deal, seat)
            return (Action(kind, letters(moves.cards_of_set(one))) for one in sets)
        case ActionKind.RETURN:
            return (Action(kind, letters(cards)) for cards in tribute.all_that_fit(deal))
        case ActionKind.BUY:
            return (Action(kind, ranks=rank) for rank in option.hints)
        case ActionKind.DISCARD:
            return (Action(kind, ranks=ranks) for ranks in _discards(deal))
        case ActionKind.CONSULT | ActionKind.SUGGEST | ActionKind.ASK:
            return (Action(kind, seat=other) for other in option.seats)
        case _:
            return iter((Action(kind),))


def _discards(deal: Deal) -> Iterator[str]:
    """Every choice among the ranks on offer that may be discarded (R9.6), fewest ranks first."""
    ranks = sorted(set(deal.variant.discard))
    for number in range(1, len(ranks) + 1):
        for chosen in combinations(ranks, number):
            if buying.may_discard(deal, chosen):
                yield "".join(LETTERS[rank] for rank in chosen)
