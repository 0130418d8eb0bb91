"""The laws of the rule book (R14), over all variants and random switches."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from engine import rules
from engine.rules import commands as c
from engine.rules import moves
from engine.rules.cards import cards_of, face
from engine.rules.laws import broken, broken_between
from engine.rules.options import ActionKind, options
from engine.rules.sets import CardSet, beats, is_gouji
from engine.rules.variant import IllegalPlay
from tests.support.play import PLAIN, every_command, fold, setups, steps, timed_out, variants

Played = tuple[rules.Setup, random.Random]

SETS = st.builds(
    CardSet,
    st.integers(0, 11),
    st.integers(1, 5),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 3),
)


@given(setups())
@settings(max_examples=60)
def test_every_law_holds_at_every_event(played: Played) -> None:
    setup, chance = played
    for before, _, events, after in steps(setup, chance):
        deal = before
        for event in events:
            following = rules.evolve(deal, event)
            assert not list(broken_between(deal, event, following))
            deal = following
        assert not list(broken(after))


@given(SETS, SETS, SETS, variants())
def test_comparison_is_irreflexive_asymmetric_and_transitive_between_sets_of_equal_count(
    low: CardSet, middle: CardSet, high: CardSet, variant: rules.Variant
) -> None:
    if len({low.size, middle.size, high.size}) > 1:
        middle, high = _resized(middle, low.size), _resized(high, low.size)

    assert not beats(low, low, variant)
    assert not (beats(low, middle, variant) and beats(middle, low, variant))
    if beats(high, middle, variant) and beats(middle, low, variant):
        assert beats(high, low, variant)


def _resized(one: CardSet, size: int) -> CardSet:
    jokers = min(one.jokers, size - 1) if size > 1 else 0
    bigs = min(one.bigs, jokers)
    return CardSet(one.base, size - jokers, 0, jokers - bigs, bigs)


@given(SETS, SETS, variants())
def test_what_beats_a_gouji_set_is_gouji_by_its_cards(table: CardSet, new: CardSet, variant: rules.Variant) -> None:
    variant = replace(variant, twos_count=True, joker_set_is_gouji=True)
    if beats(new, table, variant) and is_gouji(table, variant):
        assert is_gouji(new, variant)


@given(setups())
@settings(max_examples=30)
def test_a_deal_driven_by_time_alone_ends(played: Played) -> None:
    deal = timed_out(played[0])

    assert deal.phase is rules.Phase.OVER
    assert not list(broken(deal))


@given(setups(), st.integers(0, 1 << 16))
@settings(max_examples=25)
def test_folding_the_events_gives_the_live_state_and_any_prefix_folds(played: Played, cut: int) -> None:
    setup, chance = played
    log: list[rules.DealEvent] = []
    deal = rules.open_deal(setup)
    for _, _, events, after in steps(setup, chance):
        log += events
        deal = after

    assert fold(rules.open_deal(setup), tuple(log)) == deal
    fold(rules.open_deal(setup), tuple(log[: cut % len(log)]))


@given(setups())
@settings(max_examples=15)
def test_the_legal_sets_are_exactly_those_accepted(played: Played) -> None:
    setup, chance = played
    setup = setup._replace(variant=replace(setup.variant, illegal_play=IllegalPlay.REJECT))
    for before, _, _, _ in steps(setup, chance):
        if chance.random() > 0.05:
            continue
        for seat in range(6):
            _compare_moves(before, seat)


def _compare_moves(deal: rules.Deal, seat: int) -> None:
    listed = {moves.cards_of_set(one) for one in moves.sets_to_lay(deal, seat)}
    offered = {option.kind for option in options(deal, seat)}
    for command in every_command(deal, seat):
        accepted = not isinstance(rules.decide(deal, command), rules.Refused)
        if isinstance(command, c.Lay):
            assert accepted == (command.cards in listed), (command, accepted)
        else:
            assert accepted == (_kind(command) in offered), (command, accepted)
    assert (ActionKind.LAY in offered) == bool(listed)


def _kind(command: c.SeatCommand) -> ActionKind:
    names = {plain: plain.__name__ for plain in PLAIN}
    name = names[type(command)]
    return ActionKind["HAND_OVER" if name == "HandOver" else name.upper()]


@given(setups())
@settings(max_examples=15)
def test_the_burns_on_offer_are_exactly_those_accepted(played: Played) -> None:
    setup, chance = played
    for before, _, _, _ in steps(setup, chance):
        if before.window is None or chance.random() > 0.2:
            continue
        for seat in rules.waiting(before):
            listed = {moves.cards_of_set(one) for one in moves.sets_to_burn_with(before, seat)}
            for one in moves.all_sets(before.hands[seat]):
                cards = moves.cards_of_set(one)
                accepted = not isinstance(rules.decide(before, c.Burn(seat, cards)), rules.Refused)
                assert accepted == (cards in listed)


@given(setups())
@settings(max_examples=20)
def test_a_refused_command_changes_nothing_whatever_it_is(played: Played) -> None:
    setup, chance = played
    foreign = cards_of([face(chance.randrange(13)), face(chance.randrange(13))])
    for before, _, _, _ in steps(setup, chance):
        if chance.random() > 0.1:
            continue
        seat = chance.randrange(6)
        wishes = (c.Lay(seat, foreign), c.Burn(seat, foreign), c.Return(seat, foreign), c.Suggest(seat, 9, foreign))
        for wish in (*wishes, c.Order(seat, (foreign,)), c.Ask(seat, 9), c.Consult(seat, 9), c.Discard(seat, (5,))):
            events = rules.decide(before, wish)
            assert isinstance(events, rules.Refused) or fold(before, events) != before or wish == c.Ask(seat, 9)
