"""R14.9: the list of legal moves is exactly the set of commands that are accepted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, combinations_with_replacement

from hypothesis import given, settings

from engine import rules
from engine.rules import commands as c
from engine.rules import moves
from engine.rules.cards import LETTERS, RANKS, Cards, cards_of, count, face, letters, parse
from engine.rules.events import BurnFailed, TurnLost
from engine.rules.legal_moves import Action, legal_moves
from engine.rules.options import ActionKind
from engine.rules.variant import Advice, BurnCheck, Report
from tests.support.play import PLAIN, setups, steps

Played = tuple[rules.Setup, random.Random]


def kind_of(command: type[c.SeatCommand]) -> ActionKind:
    return ActionKind["HAND_OVER" if command is c.HandOver else command.__name__.upper()]


def everything(deal: rules.Deal, seat: int) -> Iterator[tuple[Action, c.SeatCommand]]:
    """Whatever might be accepted of this seat, each wish once, as it is listed and as it is asked for."""
    yield from ((Action(kind_of(plain)), plain(seat)) for plain in PLAIN)
    for cards in map(moves.cards_of_set, moves.all_sets(deal.hands[seat])):
        yield Action(ActionKind.LAY, letters(cards)), c.Lay(seat, cards)
        yield Action(ActionKind.BURN, letters(cards)), c.Burn(seat, cards)
    for other in range(6):
        yield Action(ActionKind.CONSULT, seat=other), c.Consult(seat, other)
        yield Action(ActionKind.ASK, seat=other), c.Ask(seat, other)
    yield from ranks_wished_for(seat)
    yield from returns(deal, seat)


def ranks_wished_for(seat: int) -> Iterator[tuple[Action, c.SeatCommand]]:
    yield from ((Action(ActionKind.BUY, ranks=LETTERS[rank]), c.Buy(seat, rank)) for rank in RANKS)
    for number in (1, 2, 3):
        for ranks in combinations(range(4), number):
            yield Action(ActionKind.DISCARD, ranks="".join(LETTERS[rank] for rank in ranks)), c.Discard(seat, ranks)


def returns(deal: rules.Deal, seat: int) -> Iterator[tuple[Action, c.SeatCommand]]:
    """Up to three cards of the hand, eaten ones and only 3s among them; one where nobody returns anything."""
    held = [rank for rank in RANKS if count(deal.hands[seat], rank)]
    most = 3 if deal.phase is rules.Phase.TRIBUTE and rules.turn(deal) == seat else 1
    for number in range(1, most + 1):
        for ranks in combinations_with_replacement(held, number):
            cards = cards_of(face(rank) for rank in ranks)
            yield Action(ActionKind.RETURN, letters(cards)), c.Return(seat, cards)


@given(setups())
@settings(max_examples=15)
def test_the_list_holds_exactly_the_actions_that_are_accepted_without_losing_the_turn(played: Played) -> None:
    setup, chance = played
    for deal, _, _, _ in steps(setup, chance):
        if chance.random() > 0.03:
            continue
        for seat in range(6):
            compare(deal, seat)


@given(setups())
@settings(max_examples=20)
def test_before_play_too_the_list_holds_exactly_the_actions_that_are_accepted(played: Played) -> None:
    setup, chance = played
    for deal, _, _, _ in steps(with_much_to_do(setup, chance), chance):
        if deal.phase is rules.Phase.PLAY:
            return
        for seat in rules.waiting(deal):
            compare(deal, seat)


def with_much_to_do(setup: rules.Setup, chance: random.Random) -> rules.Setup:
    """A deal in which tribute is paid and 3s and 4s may be bought or discarded."""
    buys = chance.random() < 0.5
    variant = replace(setup.variant, tribute=True, threes_last=buys, buy=(0, 1) if buys else ())
    pairs = chance.sample([(payer, payee) for payer in range(6) for payee in range(6) if payer != payee], 4)
    debts = tuple(rules.Debt(*pair, rules.DebtKind.FINISH, chance.randrange(1, 4)) for pair in pairs)
    return setup._replace(
        variant=replace(variant, discard=() if buys else (0, 1)), places=tuple(chance.sample(range(6), 6)), debts=debts
    )


def compare(deal: rules.Deal, seat: int) -> None:
    listed = legal_moves(deal, seat)
    actions = [move.action for move in listed.moves]
    spelt_out = {action for action in actions if action.kind not in {ActionKind.SUGGEST, ActionKind.ORDER}}
    accepted = {action for action, command in everything(deal, seat) if is_accepted(deal, command)}

    assert spelt_out == accepted
    assert len(set(actions)) == len(actions)
    assert not listed.truncated
    assert {action.kind for action in actions} == {option.kind for option in listed.options}


def is_accepted(deal: rules.Deal, command: c.SeatCommand) -> bool:
    decided = rules.decide(deal, command)
    return not isinstance(decided, rules.Refused) and not any(isinstance(event, TurnLost) for event in decided)


@given(setups())
@settings(max_examples=25)
def test_what_fails_a_bluffing_burner_is_marked_and_nothing_else(played: Played) -> None:
    setup, chance = played
    setup = setup._replace(variant=replace(setup.variant, burn_check=BurnCheck.BLUFF))
    for deal, _, _, _ in steps(setup, chance):
        if deal.burn is None or (seat := rules.turn(deal)) is None:
            continue
        for move in legal_moves(deal, seat).moves:
            if move.action.kind is ActionKind.LAY:
                assert move.fails == is_failing(deal, seat, parse(move.action.cards))


def is_failing(deal: rules.Deal, seat: int, cards: Cards) -> bool:
    decided = rules.decide(deal, c.Lay(seat, cards))
    assert not isinstance(decided, rules.Refused)
    return decided[0] == BurnFailed(seat)


@given(setups())
@settings(max_examples=15)
def test_a_suggestion_is_accepted_of_those_who_may_be_named_and_an_order_of_who_is_asked(played: Played) -> None:
    setup, chance = played
    advice = chance.choice([Advice.SHOWN, Advice.ORDER])
    setup = setup._replace(variant=replace(setup.variant, advice=advice, report=Report.SHOWN, report_at=36))
    for deal, _, _, _ in steps(setup, chance):
        if chance.random() > 0.05:
            continue
        for seat in range(6):
            compare_advice(deal, seat)


def compare_advice(deal: rules.Deal, seat: int) -> None:
    listed = {move.action for move in legal_moves(deal, seat).moves}
    for other in range(6):
        singles = (cards_of([face(rank)]) for rank in RANKS)
        accepted = any(is_accepted(deal, c.Suggest(seat, other, single)) for single in singles)
        assert accepted == (Action(ActionKind.SUGGEST, seat=other) in listed)
    whole = () if deal.advice.ordering is None else rank_by_rank(deal, deal.advice.ordering)
    assert is_accepted(deal, c.Order(seat, whole)) == (Action(ActionKind.ORDER) in listed)


def rank_by_rank(deal: rules.Deal, seat: int) -> tuple[Cards, ...]:
    hand = deal.hands[seat]
    numbers = ((rank, count(hand, rank)) for rank in reversed(RANKS))
    return tuple(parse(LETTERS[rank] * number) for rank, number in numbers if number)


@given(setups())
@settings(max_examples=25)
def test_the_first_return_listed_is_what_the_house_would_return(played: Played) -> None:
    for deal, _, _, _ in steps(*played):
        if deal.phase is not rules.Phase.TRIBUTE or rules.turn(deal) is None:
            continue
        seat = rules.waiting(deal)[0]
        stand_in = moves.stand_in(deal, seat)

        assert isinstance(stand_in, c.Return)
        assert legal_moves(deal, seat).moves[0].action.cards == letters(stand_in.cards)
