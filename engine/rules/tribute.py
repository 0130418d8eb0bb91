"""Tribute before play: who pays what to whom, and what comes back (R10); who may still revolt (R7.1).

Law: debts come from the deal before and are settled here; those that a deal makes are scored in `scoring.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.rules.cards import BIG, RANKS, SMALL, THREE, TWO, Cards, cards_of, count, face, faces_of, only, pick, size
from engine.rules.draft import Draft
from engine.rules.events import Debt, DebtLapsed, Phase, PhaseBegan, ReturnDue, TributePaid, TributeReturned
from engine.rules.scoring import is_owed
from engine.rules.state import Deal
from engine.rules.variant import DebtKind

_PAYABLE = (BIG, SMALL, TWO)


def begin(draft: Draft) -> bool:
    """Settle what can be settled at once; True when a return is waited for."""
    for due in draft.deal.preparation.dues:
        if not is_owed(draft.deal.variant, due.kind):
            draft.tell(DebtLapsed(*due))
    if draft.deal.preparation.dues:
        draft.tell(PhaseBegan(Phase.TRIBUTE, draft.deal.leader))
    return pay_on(draft)


def pay_on(draft: Draft) -> bool:
    """Pay debt after debt until a return is due; False when all are settled (R10.3)."""
    while not draft.deal.preparation.returns:
        dues = draft.deal.preparation.dues
        if not dues:
            return False
        _pay(draft, _paid_together(draft.deal, min(dues, key=lambda due: _order(draft.deal, due))))
    return True


def _order(deal: Deal, due: Debt) -> tuple[int, int, int]:
    """R10.2: by kind, then the payee's place in the deal before, then the payer's."""
    kind = DebtKind.FINISH if due.kind is DebtKind.SWEEP else due.kind
    places = deal.setup.places or tuple(range(6))
    return deal.variant.tribute_order.index(kind), places.index(due.payee), places.index(due.payer)


def _paid_together(deal: Deal, due: Debt) -> tuple[Debt, ...]:
    """Mutual point tribute is chosen by both before either moves (R10.2)."""
    if due.kind is not DebtKind.POINT:
        return (due,)
    back = (due.payee, due.payer, due.kind)
    return (due, *(other for other in deal.preparation.dues if other[:3] == back))


def _pay(draft: Draft, dues: tuple[Debt, ...]) -> None:
    chosen = [(due, highest_payable(draft.deal, due.payer, due.amount)) for due in dues]
    for due, cards in chosen:
        paid = size(cards)
        if paid:
            draft.tell(TributePaid(due.payer, due.payee, due.kind, paid, cards))
        if paid < due.amount:
            draft.tell(DebtLapsed(due.payer, due.payee, due.kind, due.amount - paid))
    for due, cards in chosen:
        _ask_for_return(draft, due, size(cards))


def highest_payable(deal: Deal, payer: int, amount: int) -> Cards:
    """The highest of b, s and 2, not eaten in this phase (R10.1)."""
    own = _own(deal, payer)
    faces = [one for rank in _PAYABLE for one in faces_of(only(own, rank))]
    return cards_of(faces[:amount])


def _own(deal: Deal, seat: int) -> Cards:
    """The cards of a hand that were not received in this phase."""
    return Cards(deal.hands[seat] - deal.preparation.eaten[seat])


def _ask_for_return(draft: Draft, due: Debt, paid: int) -> None:
    deal = draft.deal
    returned = due.kind is DebtKind.FINISH or (due.kind is DebtKind.POINT and deal.variant.return_point)
    amount = min(paid, sum(number for _, number in _returnable(deal, due.payee)))
    if returned and amount:
        draft.tell(ReturnDue(due.payee, due.payer, amount))


def _returnable(deal: Deal, seat: int) -> list[tuple[int, int]]:
    """How many of each rank the seat may return: nothing eaten, not its only 3 (R9.8, R10.1)."""
    own = _own(deal, seat)
    numbers = [(rank, count(own, rank)) for rank in RANKS]
    if deal.variant.threes_last:
        kept = max(count(deal.hands[seat], THREE) - 1, 0)
        numbers[THREE] = (THREE, min(numbers[THREE][1], kept))
    return [(rank, number) for rank, number in numbers if number]


def fits(deal: Deal, wish: Cards) -> bool:
    """Whether a return of the right number fits: as many as can are of ranks the payer still holds (R10.3)."""
    payee, payer, amount = deal.preparation.returns[0]
    returnable = dict(_returnable(deal, payee))
    wished = {rank: count(wish, rank) for rank in RANKS if count(wish, rank)}
    if any(number > returnable.get(rank, 0) for rank, number in wished.items()):
        return False
    held = {rank for rank in RANKS if count(deal.hands[payer], rank)}
    fitting = sum(number for rank, number in returnable.items() if rank in held)
    return sum(number for rank, number in wished.items() if rank in held) >= min(amount, fitting)


def all_that_fit(deal: Deal) -> Iterator[Cards]:
    """Every return that fits, suits left open, lowest first: of ranks the payer holds as many as can be (R10.3)."""
    payee, payer, amount = deal.preparation.returns[0]
    returnable = _returnable(deal, payee)
    fitting = [(rank, number) for rank, number in returnable if count(deal.hands[payer], rank)]
    others = [(rank, number) for rank, number in returnable if not count(deal.hands[payer], rank)]
    wanted = min(amount, sum(number for _, number in fitting))
    for chosen in _choices(fitting, wanted):
        for rest in _choices(others, amount - wanted):
            yield cards_of(face(rank) for rank in (*chosen, *rest))


def _choices(held: list[tuple[int, int]], amount: int) -> Iterator[tuple[int, ...]]:
    """Every way to take so many of these ranks, lowest first."""
    if not held:
        if amount == 0:
            yield ()
        return
    (rank, number), *higher = held
    least = amount - sum(more for _, more in higher)
    for taken in range(min(number, amount), max(least, 0) - 1, -1):
        for rest in _choices(higher, amount - taken):
            yield (*(rank,) * taken, *rest)


def lowest_that_fits(deal: Deal) -> Cards:
    """What is returned when time runs out (R4.11)."""
    payee, payer, amount = deal.preparation.returns[0]
    ranks = [rank for rank, number in _returnable(deal, payee) for _ in range(number)]
    ranks.sort(key=lambda rank: (not count(deal.hands[payer], rank), rank))
    return cards_of(face(rank) for rank in ranks[:amount])


def give_back(draft: Draft, seat: int, wish: Cards) -> None:
    """The payee returns these cards."""
    _, payer, amount = draft.deal.preparation.returns[0]
    draft.tell(TributeReturned(seat, payer, amount, pick(_own(draft.deal, seat), wish)))


def may_revolt(deal: Deal, seat: int) -> bool:
    """R7.1: no 2 and no joker as dealt and still so; no 3 where 3s go last; nothing owed to it if buying comes later."""
    owed = any(due.payee == seat and is_owed(deal.variant, due.kind) for due in deal.preparation.dues)
    if owed and deal.variant.buy:
        return False
    forbidden = (*_PAYABLE, THREE) if deal.variant.threes_last else _PAYABLE
    hands = deal.hands[seat], deal.preparation.dealt[seat]
    return not any(count(hand, rank) for hand in hands for rank in forbidden)
