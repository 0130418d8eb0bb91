"""Buying and discarding ranks before play (R9.2 to R9.6).

Law: prices and sellers are found here; the questions are asked one seat at a time, in public.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.rules.cards import BIG, NO_CARDS, SMALL, THREE, TWO, Cards, cards_of, count, face, only, pick
from engine.rules.draft import Draft
from engine.rules.events import Bought, Phase, PhaseBegan, PurchaseDeclined, PurchaseOffered, RanksDiscarded, RanksKept
from engine.rules.seats import from_seat, opposite, teammates
from engine.rules.state import Deal, is_active
from engine.rules.variant import BuyOrder


def offer_next(draft: Draft) -> bool:
    """Ask the next seat that must buy; False when nobody is left to ask (R9.5)."""
    deal = draft.deal
    for rank, seat in _still_to_ask(deal):
        if not count(deal.hands[seat], rank) and seller(deal, seat, rank) is not None:
            if deal.phase is not Phase.BUY:
                draft.tell(PhaseBegan(Phase.BUY, deal.leader))
            draft.tell(PurchaseOffered(seat, rank))
            return True
    return False


def _still_to_ask(deal: Deal) -> Iterator[tuple[int, int]]:
    """Ranks low to high, and within one the seats in order of play from the first leader."""
    asked = deal.preparation.offer
    everything = [
        (rank, seat) for rank in sorted(deal.variant.buy) for seat in from_seat(deal.leader) if is_active(deal, seat)
    ]
    start = 0 if asked is None else everything.index((asked[1], asked[0])) + 1
    return iter(everything[start:])


def seller(deal: Deal, buyer: int, rank: int) -> int | None:
    """Who sells: keeps at least one of the rank, first group first, nearest in order of play (R9.4)."""
    for group in _sellers(deal, buyer):
        for seat in group:
            if is_active(deal, seat) and count(deal.hands[seat], rank) >= 2:
                return seat
    return None


def _sellers(deal: Deal, buyer: int) -> tuple[tuple[int, ...], ...]:
    across = opposite(buyer)
    neighbours = ((buyer + 1) % 6, (buyer + 5) % 6)
    if deal.variant.buy_order is BuyOrder.OPPOSITE_THEN_HIS_TEAM:
        return (across,), neighbours
    return (across,), teammates(buyer), neighbours


def price(deal: Deal, buyer: int, seller_seat: int) -> Cards:
    """A 2, else a small joker, else a big one, else nothing; teammates may give free (R9.3)."""
    if deal.variant.teammate_sells_free and seller_seat in teammates(buyer):
        return NO_CARDS
    hand = deal.hands[buyer]
    coin = next((rank for rank in (TWO, SMALL, BIG) if count(hand, rank)), None)
    return NO_CARDS if coin is None else pick(hand, cards_of([face(coin)]))


def buy(draft: Draft, seat: int, rank: int) -> None:
    """The house moves the card and the price."""
    deal = draft.deal
    giver = seller(deal, seat, rank)
    if giver is not None:
        card = pick(deal.hands[giver], cards_of([face(rank)]))
        draft.tell(Bought(seat, giver, card, price(deal, seat, giver)))


def decline(draft: Draft, seat: int) -> None:
    """The seat buys nothing of the rank on offer."""
    offer = draft.deal.preparation.offer
    if offer is not None:
        draft.tell(PurchaseDeclined(seat, offer[1]))


def may_be_declined(deal: Deal) -> bool:
    """R9.2: all but 3s."""
    offer = deal.preparation.offer
    return offer is not None and offer[1] != THREE


def may_discard(deal: Deal, ranks: tuple[int, ...]) -> bool:
    """R9.6: some of the ranks on offer, without emptying a hand."""
    if not ranks or not set(ranks) <= set(deal.variant.discard):
        return False
    return all(not hand or hand != _of_ranks(hand, ranks) for hand in deal.hands)


def _of_ranks(hand: Cards, ranks: tuple[int, ...]) -> Cards:
    return Cards(sum(only(hand, rank) for rank in set(ranks)))


def discard(draft: Draft, seat: int, ranks: tuple[int, ...]) -> None:
    """Take the ranks out of all hands."""
    gone = tuple(_of_ranks(hand, ranks) for hand in draft.deal.hands)
    draft.tell(RanksDiscarded(seat, tuple(sorted(set(ranks))), gone))


def keep(draft: Draft, seat: int) -> None:
    """The first leader discards nothing."""
    draft.tell(RanksKept(seat))
