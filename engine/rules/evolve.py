"""`evolve(deal, event) -> deal`: one small function for each event, which only copies what the event says.

Law: nothing is decided or looked up here and nothing fails; an event that cannot happen in a state still folds.
`FOLDS` lists every event; a test compares it with `DealEvent`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.rules import events as e
from engine.rules.cards import NO_CARDS, Cards
from engine.rules.events import Phase
from engine.rules.seats import BIT, SEATS, mask_of, opposite
from engine.rules.state import (
    NEW_TRICK,
    ZEROS,
    Advice,
    Burn,
    Deal,
    Six,
    SixHands,
    Window,
    hands_with,
    six_with,
)
from engine.rules.variant import DebtKind


def evolve(deal: Deal, event: e.DealEvent) -> Deal:
    """The deal after this event."""
    return FOLDS[type(event)](deal, event)


def _cards_dealt(deal: Deal, event: e.CardsDealt) -> Deal:
    hands = _known(event.hands)
    return deal._replace(
        hands=hands,
        cutter=event.cutter,
        first_drawer=event.first_drawer,
        leader=event.leader,
        preparation=deal.preparation._replace(dealt=hands, dues=deal.setup.debts),
    )


def _known(hands: e.Hands) -> SixHands:
    return tuple(NO_CARDS if hand is None else hand for hand in hands)  # type: ignore[return-value]


def _phase_began(deal: Deal, event: e.PhaseBegan) -> Deal:
    leader = deal.leader if event.leader is None else event.leader
    return deal._replace(phase=event.phase, leader=leader)


# Revolution


def _revolted(deal: Deal, event: e.Revolted) -> Deal:
    standing = deal.standing
    return deal._replace(
        standing=standing._replace(
            active=standing.active & ~BIT[event.seat],
            places=six_with(standing.places, event.seat, event.place),
            revolter=event.seat,
            parting_gouji=six_with(standing.parting_gouji, opposite(event.seat), event.parting_gouji),
        )
    )


def _deal_voided(deal: Deal, event: e.DealVoided) -> Deal:
    return deal._replace(phase=Phase.VOID, hands=_known(event.hands), debts_left=deal.setup.debts)


def _revolter_promoted(deal: Deal, event: e.RevolterPromoted) -> Deal:
    places = six_with(deal.standing.places, event.seat, event.place)
    return deal._replace(standing=deal.standing._replace(places=places))


# Buying, tribute, discarding


def _purchase_offered(deal: Deal, event: e.PurchaseOffered) -> Deal:
    return deal._replace(preparation=deal.preparation._replace(offer=(event.seat, event.rank)))


def _bought(deal: Deal, event: e.Bought) -> Deal:
    hands = deal.hands
    hands = hands_with(hands, event.seat, Cards(hands[event.seat] + event.card - event.price))
    hands = hands_with(hands, event.seller, Cards(hands[event.seller] - event.card + event.price))
    return deal._replace(hands=hands)


def _tribute_paid(deal: Deal, event: e.TributePaid) -> Deal:
    cards = event.cards or NO_CARDS
    deal = _moved(deal, event.payer, event.payee, cards)
    return _settled(deal, (event.payer, event.payee, event.kind), event.amount)


def _tribute_returned(deal: Deal, event: e.TributeReturned) -> Deal:
    deal = _moved(deal, event.seat, event.payer, event.cards or NO_CARDS)
    preparation = deal.preparation
    return deal._replace(preparation=preparation._replace(returns=preparation.returns[1:]))


def _moved(deal: Deal, giver: int, taker: int, cards: Cards) -> Deal:
    hands = hands_with(deal.hands, giver, Cards(deal.hands[giver] - cards))
    hands = hands_with(hands, taker, Cards(hands[taker] + cards))
    eaten = deal.preparation.eaten
    eaten = hands_with(eaten, taker, Cards(eaten[taker] + cards))
    return deal._replace(hands=hands, preparation=deal.preparation._replace(eaten=eaten))


def _debt_lapsed(deal: Deal, event: e.DebtLapsed) -> Deal:
    return _settled(deal, (event.payer, event.payee, event.kind), event.amount)


def _settled(deal: Deal, debt: tuple[int, int, DebtKind], amount: int) -> Deal:
    left = tuple(due._replace(amount=due.amount - amount) if due[:3] == debt else due for due in deal.preparation.dues)
    return deal._replace(preparation=deal.preparation._replace(dues=tuple(due for due in left if due.amount > 0)))


def _return_due(deal: Deal, event: e.ReturnDue) -> Deal:
    preparation = deal.preparation
    due = (event.seat, event.payer, event.amount)
    return deal._replace(preparation=preparation._replace(returns=(*preparation.returns, due)))


def _ranks_discarded(deal: Deal, event: e.RanksDiscarded) -> Deal:
    hands = _known(tuple(Cards(hand - gone) for hand, gone in zip(deal.hands, event.cards, strict=True)))
    discarded = Cards(deal.discarded + sum(event.cards))
    return deal._replace(hands=hands, discarded=discarded)


# Windows


def _window_opened(deal: Deal, event: e.WindowOpened) -> Deal:
    return deal._replace(window=Window(event.kind, mask_of(event.asked)))


def _answered(deal: Deal, event: e.Answered) -> Deal:
    window = deal.window
    if window is None:
        return deal
    return deal._replace(
        window=window._replace(
            answered=window.answered | BIT[event.seat],
            yes=window.yes | BIT[event.seat] if event.yes else window.yes,
            cards=_with_cards(window.cards, event.seat, event.cards),
        )
    )


def _with_cards(declared: tuple[Cards, ...], seat: int, cards: Cards | None) -> tuple[Cards, ...]:
    return (*declared[:seat], cards, *declared[seat + 1 :]) if cards else declared


def _window_closed(deal: Deal, _: e.WindowClosed) -> Deal:
    return deal._replace(window=None)


def _declared(deal: Deal, event: e.Declared) -> Deal:
    points = deal.points_of
    before = points.declared_before | BIT[event.seat] if event.before_deal else points.declared_before
    return deal._replace(points_of=points._replace(declared=points.declared | BIT[event.seat], declared_before=before))


# Tricks


def _set_laid(deal: Deal, event: e.SetLaid) -> Deal:
    trick = deal.trick._replace(
        owner=event.seat, cards=event.cards, gouji=event.gouji, answers=event.answers, yielded=None
    )
    hands = hands_with(deal.hands, event.seat, Cards(deal.hands[event.seat] - event.cards))
    played = Cards(deal.played + event.cards)
    if deal.advice.ordering == event.seat:
        return deal._replace(hands=hands, trick=trick, played=played, advice=_order_led(deal.advice))
    return deal._replace(hands=hands, trick=trick, played=played)


def _order_led(advice: Advice) -> Advice:
    left = advice.order[1:]
    return advice._replace(order=left, ordering=advice.ordering if left else None)


def _passed(deal: Deal, event: e.Passed | e.Covered) -> Deal:
    trick = deal.trick
    return deal._replace(trick=trick._replace(answers=event.answers, passed=trick.passed | BIT[event.seat]))


def _yielded(deal: Deal, event: e.Yielded) -> Deal:
    return deal._replace(trick=deal.trick._replace(answers=event.answers, yielded=event.seat))


def _turn_lost(deal: Deal, event: e.TurnLost) -> Deal:
    left = max(deal.house.forfeits[event.seat] - 1, 0)
    house = deal.house._replace(forfeits=six_with(deal.house.forfeits, event.seat, left))
    return deal._replace(house=house, leader=deal.leader if event.leader is None else event.leader)


def _trick_ended(deal: Deal, event: e.TrickEnded) -> Deal:
    return deal._replace(trick=NEW_TRICK, leader=deal.leader if event.leader is None else event.leader)


# Burning


def _burn_started(deal: Deal, event: e.BurnStarted) -> Deal:
    return deal._replace(burn=Burn(event.seat, event.victim, event.counter))


def _burn_over(deal: Deal, _: e.DealEvent) -> Deal:
    return deal._replace(burn=None)


def _burn_succeeded(deal: Deal, event: e.BurnSucceeded) -> Deal:
    return _owing(deal, e.Debt(event.victim, event.seat, DebtKind.BURN, event.amount))._replace(burn=None)


def _owing(deal: Deal, debt: e.Debt) -> Deal:
    if not debt.amount:
        return deal
    same = sum(old.amount for old in deal.debts_left if old[:3] == debt[:3])
    others = tuple(old for old in deal.debts_left if old[:3] != debt[:3])
    return deal._replace(debts_left=(*others, debt._replace(amount=debt.amount + same)))


# Going out


def _went_out(deal: Deal, event: e.WentOut) -> Deal:
    standing = deal.standing
    across = opposite(event.seat)
    gouji = six_with(standing.parting_gouji, across, 1) if event.kept else standing.parting_gouji
    standing = standing._replace(
        active=standing.active & ~BIT[event.seat],
        places=six_with(standing.places, event.seat, event.place),
        gone=(*standing.gone, event.seat),
        parting_gouji=gouji,
    )
    if not event.closes:
        return deal._replace(standing=standing)
    trick = deal.trick
    parting = trick.parting | BIT[across] if event.parting else trick.parting
    trick = trick._replace(closed=True, exempt=trick.exempt | BIT[across], parting=parting)
    return deal._replace(standing=standing, trick=trick)


def _failed(deal: Deal, event: e.Failed) -> Deal:
    standing = deal.standing
    return deal._replace(
        leader=deal.leader if event.leader is None else event.leader,
        trick=deal.trick._replace(answers=event.answers),
        window=_without(deal.window, event.seat),
        standing=standing._replace(
            active=standing.active & ~BIT[event.seat],
            places=six_with(standing.places, event.seat, event.place),
            failed=standing.failed | BIT[event.seat],
        ),
    )


def _without(window: Window | None, seat: int) -> Window | None:
    if window is None:
        return None
    keep = ~BIT[seat]
    return window._replace(asked=window.asked & keep, answered=window.answered & keep, yes=window.yes & keep)


def _smothered(deal: Deal, event: e.Smothered) -> Deal:
    return _owing(deal, e.Debt(event.seat, event.by, DebtKind.SMOTHER, event.amount))


def _windfall_applied(deal: Deal, event: e.WindfallApplied) -> Deal:
    return deal._replace(trick=deal.trick._replace(applied=event.seat))


def _parting_gouji_laid(deal: Deal, event: e.PartingGoujiLaid) -> Deal:
    trick = deal.trick._replace(parting_laid=deal.trick.parting_laid | BIT[event.seat])
    gouji = six_with(deal.standing.parting_gouji, event.seat, event.left)
    return deal._replace(trick=trick, standing=deal.standing._replace(parting_gouji=gouji))


def _parting_gouji_renounced(deal: Deal, event: e.PartingGoujiRenounced) -> Deal:
    return _parting_gouji_laid(deal, e.PartingGoujiLaid(event.seat, 0))


def _became_headless(deal: Deal, event: e.BecameHeadless) -> Deal:
    standing = deal.standing
    return deal._replace(standing=standing._replace(headless=standing.headless | BIT[event.seat]))


def _chaos_began(deal: Deal, _: e.ChaosBegan) -> Deal:
    return deal._replace(standing=deal.standing._replace(chaos=True, parting_gouji=ZEROS))


def _deal_ended(deal: Deal, event: e.DealEnded) -> Deal:
    return deal._replace(
        phase=Phase.OVER,
        window=None,
        burn=None,
        debts_left=event.debts,
        advice=deal.advice._replace(ordering=None, order=()),
        standing=deal.standing._replace(places=_places_by_seat(event.places)),
        result=deal.result._replace(places=event.places, points=(event.even_points, event.odd_points)),
    )


def _places_by_seat(seats: tuple[int, ...]) -> Six:
    return tuple(seats.index(seat) + 1 if seat in seats else 0 for seat in SEATS)  # type: ignore[return-value]


def _swap_proposed(deal: Deal, event: e.SwapProposed) -> Deal:
    return deal._replace(result=deal.result._replace(swap_proposer=event.seat))


def _places_swapped(deal: Deal, event: e.PlacesSwapped) -> Deal:
    return deal._replace(
        debts_left=event.debts,
        standing=deal.standing._replace(places=_places_by_seat(event.places)),
        result=deal.result._replace(places=event.places, swapped=True),
    )


# Opening


def _point_opened(deal: Deal, event: e.PointOpened) -> Deal:
    points, bit = deal.points_of, BIT[event.seat]
    return deal._replace(points_of=points._replace(opened=points.opened | bit, fours_due=points.fours_due & ~bit))


def _fours_due(deal: Deal, event: e.FoursDue) -> Deal:
    points = deal.points_of
    return deal._replace(points_of=points._replace(fours_due=points.fours_due | BIT[event.seat]))


def _opening_lost(deal: Deal, event: e.OpeningLost) -> Deal:
    points, bit = deal.points_of, BIT[event.seat]
    return deal._replace(points_of=points._replace(lost=points.lost | bit, fours_due=points.fours_due & ~bit))


# Advice


def _consulted(deal: Deal, event: e.Consulted) -> Deal:
    chosen = deal.advice.consulted
    chosen = (*chosen[: event.seat], event.teammate, *chosen[event.seat + 1 :])
    return deal._replace(advice=deal.advice._replace(consulted=chosen))


def _count_asked(deal: Deal, event: e.CountAsked) -> Deal:
    if not event.shown:
        return deal
    shown = deal.advice.counts_shown | BIT[event.of]
    return deal._replace(advice=deal.advice._replace(counts_shown=shown))


def _order_asked(deal: Deal, event: e.OrderAsked) -> Deal:
    trick = deal.trick._replace(handed_over=True)
    return deal._replace(trick=trick, advice=deal.advice._replace(ordering=event.seat))


def _order_given(deal: Deal, event: e.OrderGiven) -> Deal:
    return deal._replace(advice=deal.advice._replace(order=event.sets or ()))


def _order_over(deal: Deal, _: e.DealEvent) -> Deal:
    return deal._replace(advice=deal.advice._replace(ordering=None, order=()))


# The house


def _forfeited(deal: Deal, event: e.Forfeited) -> Deal:
    forfeits = six_with(deal.house.forfeits, event.seat, deal.house.forfeits[event.seat] + 1)
    return deal._replace(house=deal.house._replace(forfeits=forfeits))


def _points_docked(deal: Deal, event: e.PointsDocked) -> Deal:
    docked = six_with(deal.house.docked, event.seat, deal.house.docked[event.seat] + event.points)
    return deal._replace(house=deal.house._replace(docked=docked))


def _unchanged(deal: Deal, _: e.DealEvent) -> Deal:
    return deal


FOLDS: dict[type[e.DealEvent], Callable[[Deal, Any], Deal]] = {
    e.CardsDealt: _cards_dealt,
    e.Revolted: _revolted,
    e.DealVoided: _deal_voided,
    e.Bought: _bought,
    e.PurchaseDeclined: _unchanged,
    e.TributePaid: _tribute_paid,
    e.TributeReturned: _tribute_returned,
    e.DebtLapsed: _debt_lapsed,
    e.Declared: _declared,
    e.RanksDiscarded: _ranks_discarded,
    e.RanksKept: _unchanged,
    e.PhaseBegan: _phase_began,
    e.PurchaseOffered: _purchase_offered,
    e.ReturnDue: _return_due,
    e.WindowOpened: _window_opened,
    e.Answered: _answered,
    e.WindowClosed: _window_closed,
    e.SetLaid: _set_laid,
    e.Passed: _passed,
    e.Covered: _passed,
    e.Yielded: _yielded,
    e.TurnLost: _turn_lost,
    e.TimedOut: _unchanged,
    e.TrickEnded: _trick_ended,
    e.BurnDeclared: _unchanged,
    e.BurnStarted: _burn_started,
    e.BurnCountered: _burn_over,
    e.BurnRelieved: _burn_over,
    e.BurnFailed: _burn_over,
    e.BurnEnded: _burn_over,
    e.BurnSucceeded: _burn_succeeded,
    e.WentOut: _went_out,
    e.WindfallApplied: _windfall_applied,
    e.WindfallGranted: _unchanged,
    e.WindfallRefused: _unchanged,
    e.PartingGoujiLaid: _parting_gouji_laid,
    e.PartingGoujiRenounced: _parting_gouji_renounced,
    e.BecameHeadless: _became_headless,
    e.ChaosBegan: _chaos_began,
    e.RevolterPromoted: _revolter_promoted,
    e.Smothered: _smothered,
    e.Failed: _failed,
    e.DealEnded: _deal_ended,
    e.PointOpened: _point_opened,
    e.FoursDue: _fours_due,
    e.OpeningLost: _opening_lost,
    e.Consulted: _consulted,
    e.Suggested: _unchanged,
    e.CountAsked: _count_asked,
    e.OrderAsked: _order_asked,
    e.OrderGiven: _order_given,
    e.OrderDeclined: _order_over,
    e.OrderLapsed: _order_over,
    e.Warned: _unchanged,
    e.Forfeited: _forfeited,
    e.PointsDocked: _points_docked,
    e.JudgedLast: _unchanged,
    e.Disqualified: _unchanged,
    e.SwapProposed: _swap_proposed,
    e.PlacesSwapped: _places_swapped,
}
