"""Simulated deals: laws hold, rare rules fire, the same seed plays the same deals."""

from __future__ import annotations

import random

import pytest

from engine import rules
from engine.rules import cards, commands
from engine.rules import events as happened
from engine.service.simulation import EVENT_NAMES, TABLE, LawBroken, Tally, series, stacked

NEEDS_ITS_SWITCH = {"ranks_discarded", "ranks_kept", "swap_proposed", "places_swapped"}


def played(key: str, deals: int = 20, seed: str = "a", **switches: str) -> Tally:
    return series(rules.resolve(key, switches), deals, random.Random(seed), TABLE)


@pytest.mark.parametrize("key", rules.VARIANTS)
def test_a_series_of_deals_of_every_variant_keeps_the_laws(key: str) -> None:
    tally = played(key)

    assert tally.deals == 20
    assert tally.voids + sum(tally.points.values()) == 20


def test_the_same_seed_plays_the_same_deals() -> None:
    assert played("shandong").summary() == played("shandong").summary()
    assert played("shandong").summary() != played("shandong", seed="b").summary()


def test_discarding_and_swapping_happen_where_their_switches_are_on() -> None:
    tally = played("qingdao-charter", 60, discard="(3,4)", swap_last="yes")

    assert tally.events.keys() >= NEEDS_ITS_SWITCH


def test_what_never_happened_is_told_by_name() -> None:
    tally = Tally()
    tally.events["set_laid"] += 1

    assert set(tally.never()) == set(EVENT_NAMES) - {"set_laid"}


def test_a_stacked_deck_holds_the_same_cards_and_lets_two_seats_revolt() -> None:
    chance = random.Random("stack")
    variant = rules.VARIANTS["qingdao-charter"]
    deck = stacked(variant, rules.full_deck(variant), chance)

    assert sorted(deck) == sorted(rules.full_deck(variant))
    events = rules.decide(rules.open_deal(rules.Setup(variant, deck, first_drawer=0)), commands.Begin())
    assert not isinstance(events, rules.Refused)
    dealt = events[0]
    assert isinstance(dealt, happened.CardsDealt)
    able = [hand for hand in dealt.hands if hand and not any(cards.count(hand, rank) for rank in (12, 13, 14))]
    assert len(able) == 2


def test_a_broken_law_stops_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.service.simulation.broken", lambda _: iter(["R14.1: cards were lost or made"]))

    with pytest.raises(LawBroken, match="R14"):
        played("qingdao-charter", 1)
