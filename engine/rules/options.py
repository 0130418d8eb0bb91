"""What a seat may do now, as a client shows it: kinds of action with short hints (R14.9).

Law: an option is offered exactly when a command of its kind would be accepted; hints are a sorted choice of sets, never
all of them (`moves.py` lists all).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from engine.rules import commands as c
from engine.rules import moves
from engine.rules.cards import LETTERS, NO_CARDS, Cards, count, letters
from engine.rules.events import Phase, WindowKind
from engine.rules.legality import refusal
from engine.rules.seats import SEATS
from engine.rules.sets import CardSet
from engine.rules.state import Deal, is_over, turn


class ActionKind(StrEnum):
    """What a seat can do, named as in the notation."""

    LAY = "lay"
    PASS = "pass"  # noqa: S105 - a card player passes
    COVER = "cover"
    YIELD = "yield"
    BURN = "burn"
    DECLINE = "decline"
    APPLY = "apply"
    AGREE = "agree"
    REFUSE = "refuse"
    REVOLT = "revolt"
    STAY = "stay"
    RENOUNCE = "renounce"
    DECLARE = "declare"
    SILENT = "silent"
    BUY = "buy"
    NO = "no"
    DISCARD = "discard"
    KEEP = "keep"
    RETURN = "return"
    CONSULT = "consult"
    SUGGEST = "suggest"
    HAND_OVER = "hand_over"
    ORDER = "order"
    SWAP = "swap"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Option:
    """One kind of action that would be accepted; `hints` are sets or ranks in letters, `seats` whom it may name."""

    kind: ActionKind
    hints: tuple[str, ...] = ()
    seats: tuple[int, ...] = ()


_PLAIN: tuple[tuple[ActionKind, Callable[[int], c.Command]], ...] = (
    (ActionKind.PASS, c.Pass),
    (ActionKind.COVER, c.Cover),
    (ActionKind.YIELD, c.Yield),
    (ActionKind.DECLINE, c.Decline),
    (ActionKind.APPLY, c.Apply),
    (ActionKind.AGREE, c.Agree),
    (ActionKind.REFUSE, c.Refuse),
    (ActionKind.REVOLT, c.Revolt),
    (ActionKind.STAY, c.Stay),
    (ActionKind.RENOUNCE, c.Renounce),
    (ActionKind.DECLARE, c.Declare),
    (ActionKind.SILENT, c.Silent),
    (ActionKind.NO, c.No),
    (ActionKind.KEEP, c.Keep),
    (ActionKind.HAND_OVER, c.HandOver),
    (ActionKind.SWAP, c.Swap),
)


def options(deal: Deal, seat: int) -> tuple[Option, ...]:
    """Everything the seat may do now, without what only the house does."""
    plain = [Option(kind) for kind, command in _PLAIN if refusal(deal, command(seat)) is None]
    special = (option for offer in _SPECIAL if (option := offer(deal, seat)) is not None)
    return (*special, *plain)


def _lay(deal: Deal, seat: int) -> Option | None:
    sets = moves.sets_to_lay(deal, seat)
    return Option(ActionKind.LAY, hints(deal, seat, sets)) if sets else None


def _burn(deal: Deal, seat: int) -> Option | None:
    waiting = deal.window is not None and deal.window.waiting >> seat & 1
    sets = moves.sets_to_burn_with(deal, seat) if waiting else []
    return Option(ActionKind.BURN, hints(deal, seat, sets)) if sets else None


def _buy(deal: Deal, seat: int) -> Option | None:
    offer = deal.preparation.offer
    if turn(deal) != seat or deal.phase is not Phase.BUY or offer is None:
        return None
    return Option(ActionKind.BUY, (LETTERS[offer[1]],))


def _discard(deal: Deal, seat: int) -> Option | None:
    ranks = deal.variant.discard
    choices = [(rank,) for rank in ranks] + ([ranks] if len(ranks) > 1 else [])
    offered = [choice for choice in choices if refusal(deal, c.Discard(seat, choice)) is None]
    texts = tuple("".join(LETTERS[rank] for rank in choice) for choice in offered)
    return Option(ActionKind.DISCARD, texts) if texts else None


def _return(deal: Deal, seat: int) -> Option | None:
    if turn(deal) != seat or deal.phase is not Phase.TRIBUTE:
        return None
    lowest = moves.stand_in(deal, seat)
    return Option(ActionKind.RETURN, (letters(lowest.cards),)) if isinstance(lowest, c.Return) else None


def _consult(deal: Deal, seat: int) -> Option | None:
    seats = tuple(mate for mate in SEATS if refusal(deal, c.Consult(seat, mate)) is None)
    return Option(ActionKind.CONSULT, seats=seats) if seats else None


def _suggest(deal: Deal, seat: int) -> Option | None:
    seats = tuple(mate for mate in SEATS if _may_suggest_to(deal, seat, mate))
    return Option(ActionKind.SUGGEST, seats=seats) if seats else None


def _may_suggest_to(deal: Deal, seat: int, mate: int) -> bool:
    hand = deal.hands[mate]
    if hand == NO_CARDS:
        return False
    single = next(moves.all_sets(hand, frozenset({1})), None)
    return single is not None and refusal(deal, c.Suggest(seat, mate, moves.cards_of_set(single))) is None


def _ask(deal: Deal, seat: int) -> Option | None:
    if refusal(deal, c.Ask(seat, seat)) is not None:
        return None
    return Option(ActionKind.ASK, seats=tuple(other for other in SEATS if other != seat))


def _order(deal: Deal, seat: int) -> Option | None:
    window = deal.window
    asked = window is not None and window.kind is WindowKind.ORDER and window.waiting >> seat & 1
    return Option(ActionKind.ORDER) if asked and not is_over(deal) else None


_SPECIAL = (_lay, _burn, _buy, _discard, _return, _consult, _suggest, _ask, _order)


def hints(deal: Deal, seat: int, sets: list[CardSet]) -> tuple[str, ...]:
    """A few of these sets: whole ranks without jokers first, then without jokers, then the cheapest jokers."""
    hand = deal.hands[seat]
    ordered = sorted(sets, key=lambda one: (one.jokers, not _keeps_together(hand, one), one.twos))
    return tuple(letters(moves.cards_of_set(one)) for one in ordered[: moves.HINTS])


def _keeps_together(hand: Cards, one: CardSet) -> bool:
    """Whether the set takes all cards of its rank and splits none."""
    return not one.naturals or one.naturals == count(hand, one.base)
