"""What a seat may do now, as a client shows it: kinds of action with short hints (R14.9).

Law: an option is offered exactly when a command of its kind would be accepted; hints are a sorted choice of sets, never
all of them (`moves.py` lists all).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from engine.rules import advice, moves
from engine.rules import commands as c
from engine.rules.cards import LETTERS, Cards, count, letters
from engine.rules.events import Phase, WindowKind
from engine.rules.legality import refusal
from engine.rules.seats import SEATS, has, teammates
from engine.rules.sets import CardSet
from engine.rules.state import Deal, Window, is_burner, is_over, turn


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


Make = Callable[[int], c.Command]
Offer = Callable[[Deal, int], Option | None]

_TO_ANSWER: dict[WindowKind, tuple[tuple[ActionKind, Make], ...]] = {
    WindowKind.BURN: ((ActionKind.DECLINE, c.Decline),),
    WindowKind.COUNTER: ((ActionKind.DECLINE, c.Decline),),
    WindowKind.ORDER: ((ActionKind.DECLINE, c.Decline),),
    WindowKind.REVOLUTION: ((ActionKind.REVOLT, c.Revolt), (ActionKind.STAY, c.Stay)),
    WindowKind.DECLARE: ((ActionKind.DECLARE, c.Declare), (ActionKind.SILENT, c.Silent)),
    WindowKind.WINDFALL: ((ActionKind.AGREE, c.Agree), (ActionKind.REFUSE, c.Refuse)),
}
_IN_TURN: tuple[tuple[ActionKind, Make], ...] = (
    (ActionKind.PASS, c.Pass),
    (ActionKind.COVER, c.Cover),
    (ActionKind.YIELD, c.Yield),
    (ActionKind.APPLY, c.Apply),
    (ActionKind.HAND_OVER, c.HandOver),
)
_BEFORE_PLAY: tuple[tuple[ActionKind, Make], ...] = ((ActionKind.NO, c.No), (ActionKind.KEEP, c.Keep))
_ANY_TIME: tuple[tuple[ActionKind, Make], ...] = ((ActionKind.RENOUNCE, c.Renounce),)
_AFTER: tuple[tuple[ActionKind, Make], ...] = ((ActionKind.SWAP, c.Swap), (ActionKind.AGREE, c.Agree))


def options(deal: Deal, seat: int) -> tuple[Option, ...]:
    """Everything the seat may do now, without what only the house does."""
    if is_over(deal):
        return _plain(deal, seat, _AFTER)
    if deal.window is not None:
        return _answers(deal, seat, deal.window)
    if deal.phase is not Phase.PLAY:
        return _preparing(deal, seat) if turn(deal) == seat else ()
    return (*_acting(deal, seat), *_plain(deal, seat, _ANY_TIME), *_some(deal, seat, (_consult, _suggest, _ask)))


def _plain(deal: Deal, seat: int, kinds: tuple[tuple[ActionKind, Make], ...]) -> tuple[Option, ...]:
    return tuple(Option(kind) for kind, make in kinds if refusal(deal, make(seat)) is None)


def _some(deal: Deal, seat: int, offers: tuple[Offer, ...]) -> tuple[Option, ...]:
    return tuple(option for offer in offers if (option := offer(deal, seat)) is not None)


def _answers(deal: Deal, seat: int, window: Window) -> tuple[Option, ...]:
    if not has(window.waiting, seat):
        return ()
    return (*_some(deal, seat, (_burn, _order)), *_plain(deal, seat, _TO_ANSWER[window.kind]))


def _preparing(deal: Deal, seat: int) -> tuple[Option, ...]:
    return (*_some(deal, seat, (_buy, _discard, _return)), *_plain(deal, seat, _BEFORE_PLAY))


def _acting(deal: Deal, seat: int) -> tuple[Option, ...]:
    if turn(deal) != seat:
        return ()
    return (*_some(deal, seat, (_lay,)), *_plain(deal, seat, _IN_TURN))


def _lay(deal: Deal, seat: int) -> Option | None:
    sets = moves.sets_to_lay(deal, seat)
    safe = [one for one in sets if not moves.fails(deal, seat, one)] if is_burner(deal, seat) else sets
    return Option(ActionKind.LAY, hints(deal, seat, safe)) if sets else None


def _burn(deal: Deal, seat: int) -> Option | None:
    sets = moves.sets_to_burn_with(deal, seat)
    return Option(ActionKind.BURN, hints(deal, seat, sets)) if sets else None


def _buy(deal: Deal, _: int) -> Option | None:
    offer = deal.preparation.offer
    if deal.phase is not Phase.BUY or offer is None:
        return None
    return Option(ActionKind.BUY, (LETTERS[offer[1]],))


def _discard(deal: Deal, seat: int) -> Option | None:
    ranks = deal.variant.discard
    choices = [(rank,) for rank in ranks] + ([ranks] if len(ranks) > 1 else [])
    offered = [choice for choice in choices if refusal(deal, c.Discard(seat, choice)) is None]
    texts = tuple("".join(LETTERS[rank] for rank in choice) for choice in offered)
    return Option(ActionKind.DISCARD, texts) if texts else None


def _return(deal: Deal, seat: int) -> Option | None:
    if deal.phase is not Phase.TRIBUTE:
        return None
    lowest = moves.stand_in(deal, seat)
    return Option(ActionKind.RETURN, (letters(lowest.cards),)) if isinstance(lowest, c.Return) else None


def _consult(deal: Deal, seat: int) -> Option | None:
    seats = tuple(mate for mate in teammates(seat) if refusal(deal, c.Consult(seat, mate)) is None)
    return Option(ActionKind.CONSULT, seats=seats) if seats else None


def _suggest(deal: Deal, seat: int) -> Option | None:
    seats = tuple(mate for mate in teammates(seat) if advice.may_suggest(deal, seat, mate))
    return Option(ActionKind.SUGGEST, seats=seats) if seats else None


def _ask(deal: Deal, _: int) -> Option | None:
    return Option(ActionKind.ASK, seats=tuple(SEATS)) if advice.may_ask(deal) else None


def _order(deal: Deal, _: int) -> Option | None:
    asked = deal.window is not None and deal.window.kind is WindowKind.ORDER
    return Option(ActionKind.ORDER) if asked else None


def hints(deal: Deal, seat: int, sets: list[CardSet]) -> tuple[str, ...]:
    """A few of these sets: whole ranks without jokers first, then without jokers, then the cheapest jokers."""
    hand = deal.hands[seat]
    ordered = sorted(sets, key=lambda one: (one.jokers, not _keeps_together(hand, one), one.twos))
    return tuple(letters(moves.cards_of_set(one)) for one in ordered[: moves.HINTS])


def _keeps_together(hand: Cards, one: CardSet) -> bool:
    """Whether the set takes all cards of its rank and splits none."""
    return not one.naturals or one.naturals == count(hand, one.base)
