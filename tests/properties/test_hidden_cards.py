"""R14.6: what a viewer receives does not depend on cards he may not see."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from engine import rules
from engine.rules import commands as c
from engine.rules import events as e
from engine.rules import visibility
from engine.rules.cards import Cards, holds
from engine.rules.variant import FirstLead
from engine.service.simulation import shuffled
from tests.support.play import fold, setups, steps

Played = tuple[rules.Setup, random.Random]

SHOWN_TO_ALL = (e.SetLaid, e.Bought, e.RanksDiscarded, e.DealVoided)


@given(setups())
@settings(max_examples=30)
def test_no_event_shows_a_viewer_a_card_he_may_not_see(played: Played) -> None:
    setup, chance = played
    for deal, _, events, _ in steps(setup, chance):
        before = deal
        for event in events:
            after = rules.evolve(before, event)
            for viewer in (None, *range(6)):
                shown = rules.redacted(event, viewer)
                if shown is not None and not isinstance(shown, SHOWN_TO_ALL):
                    _assert_known(shown, viewer, before, after)
            before = after


def _assert_known(shown: rules.DealEvent, viewer: int | None, before: rules.Deal, after: rules.Deal) -> None:
    visible = [
        deal.hands[seat]
        for deal in (before, after)
        for seat in range(6)
        if viewer is not None and visibility.sees_hand(deal, viewer, seat)
    ]
    for cards in _cards_in(shown):
        assert any(holds(hand, cards) for hand in visible), (shown, viewer)


def _cards_in(shown: rules.DealEvent) -> list[Cards]:
    found: list[Cards] = []
    for field in fields(shown):
        value = getattr(shown, field.name)
        if field.name in {"cards", "card", "price"} and value:
            found.append(value)
        if field.name in {"hands", "sets"} and value:
            found += [one for one in value if one]
    return found


@given(st.integers(0, 1 << 32), st.integers(0, 5), st.sampled_from(sorted(rules.VARIANTS)))
@settings(max_examples=60)
def test_hands_of_others_change_nothing_of_what_a_seat_receives(seed: int, viewer: int, key: str) -> None:
    chance = random.Random(seed)
    variant = replace(rules.VARIANTS[key], first_lead=FirstLead.FIRST_DRAWER, buy=(), discard=())
    setup = rules.Setup(variant, shuffled(variant, chance), first_drawer=0)

    first = _received(setup, viewer)
    again = _received(setup._replace(deck=_others_permuted(setup.deck, viewer, chance)), viewer)

    assert first == again


def _others_permuted(deck: tuple[int, ...], viewer: int, chance: random.Random) -> tuple[int, ...]:
    others = [at for at in range(len(deck)) if at % 6 != viewer]
    mixed = chance.sample(others, len(others))
    permuted = list(deck)
    for at, source in zip(others, mixed, strict=True):
        permuted[at] = deck[source]
    return tuple(permuted)


def _received(setup: rules.Setup, viewer: int) -> list[object]:
    """Everything a seat is shown until the first lead, which is the first act that shows a card."""
    deal = rules.open_deal(setup)
    received: list[object] = []
    command: c.Command = c.Begin()
    while True:
        events = rules.decide(deal, command)
        assert not isinstance(events, rules.Refused)
        deal = fold(deal, events)
        received += [rules.redacted(event, viewer) for event in events]
        received += [rules.public_view(deal), rules.private_view(deal, viewer)]
        if deal.phase is rules.Phase.PLAY:
            return received
        command = c.TimeOut(rules.waiting(deal)[0])


def test_every_event_is_either_public_or_redacted() -> None:
    kinds = set(get_args(rules.DealEvent))

    assert kinds == visibility.PUBLIC | set(visibility._REDACTIONS)
    assert not visibility.PUBLIC & set(visibility._REDACTIONS)
