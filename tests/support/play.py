"""Deals for tests of the rules: in the players' language, or played at random.

Law: builds and plays; asserts nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, get_type_hints

from hypothesis import strategies as st

from engine import rules
from engine.rules import commands as c
from engine.rules import moves
from engine.service.simulation import careless, shuffled, thrifty

Step = tuple[rules.Deal, c.Command, tuple[rules.DealEvent, ...], rules.Deal]


def fold(deal: rules.Deal, events: tuple[rules.DealEvent, ...]) -> rules.Deal:
    for event in events:
        deal = rules.evolve(deal, event)
    return deal


def steps(setup: rules.Setup, chance: random.Random, limit: int = 20_000) -> Iterator[Step]:
    """A deal at random, command by command: before, command, events, after."""
    deal = rules.open_deal(setup)
    command: c.Command = c.Begin()
    for _ in range(limit):
        events = rules.decide(deal, command)
        assert not isinstance(events, rules.Refused), (command, events)
        after = fold(deal, events)
        yield deal, command, events, after
        deal = after
        if rules.is_over(deal):
            return
        seat = chance.choice(rules.waiting(deal))
        player = careless if seat % 2 else thrifty
        command = c.TimeOut(seat) if chance.random() < 0.02 else player(deal, seat, chance)
    raise AssertionError("the deal does not end")


def timed_out(setup: rules.Setup) -> rules.Deal:
    """A deal in which nobody ever acts."""
    deal = fold(rules.open_deal(setup), _accepted(rules.open_deal(setup), c.Begin()))
    while not rules.is_over(deal):
        deal = fold(deal, _accepted(deal, c.TimeOut(rules.waiting(deal)[0])))
    return deal


def _accepted(deal: rules.Deal, command: c.Command) -> tuple[rules.DealEvent, ...]:
    events = rules.decide(deal, command)
    assert not isinstance(events, rules.Refused), (command, events)
    return events


@st.composite
def variants(draw: st.DrawFn) -> rules.Variant:
    """A named variant, or one with switches set at random; always one that six could play."""
    variant = draw(st.sampled_from(list(rules.VARIANTS.values())))
    names = draw(st.lists(st.sampled_from(sorted(CHOICES)), max_size=12, unique=True))
    variant = replace(variant, **{name: draw(st.sampled_from(CHOICES[name])) for name in names})
    return replace(variant, discard=()) if variant.threes_last else variant


def _choices() -> dict[str, list[Any]]:
    hints = get_type_hints(rules.Variant)
    found: dict[str, list[Any]] = {
        "buy": [(), (0,), (0, 1)],
        "discard": [(), (0,), (0, 1)],
        "chaos_after": [1, 2],
        "deck": [(), ((0, 10), (1, 8))],
        "report_at": [0, 3, 10, 36],
        "counter_burn_multiplier": [1, 2, 3],
    }
    for field in fields(rules.Variant):
        kind = hints[field.name]
        if kind is bool:
            found[field.name] = [True, False]
        elif isinstance(kind, type) and issubclass(kind, StrEnum):
            found[field.name] = list(kind)
    return found


CHOICES = _choices()


@st.composite
def setups(draw: st.DrawFn) -> tuple[rules.Setup, random.Random]:
    """A deal about to begin, first or later in a match, and the chance it is played with."""
    chance = random.Random(draw(st.integers(0, 1 << 32)))
    variant = draw(variants())
    places = tuple(chance.sample(range(6), 6)) if draw(st.booleans()) else ()
    debts = _debts(variant, chance) if places else ()
    setup = rules.Setup(
        variant,
        shuffled(variant, chance),
        places=places,
        debts=debts,
        cutter=chance.randrange(6) if places else None,
        changed=tuple(chance.sample(range(6), chance.randrange(3))) if places else (),
        random_seat=chance.randrange(6),
    )
    return setup, chance


def _debts(variant: rules.Variant, chance: random.Random) -> tuple[rules.Debt, ...]:
    if not variant.tribute:
        return ()
    pairs = [(payer, payee) for payer in range(6) for payee in range(6) if payer != payee]
    chosen = chance.sample(pairs, chance.randrange(5))
    kinds = [kind for kind in variant.tribute_order if kind is not rules.DebtKind.POINT]
    owed = [rules.Debt(payer, payee, chance.choice(kinds), chance.randrange(1, 4)) for payer, payee in chosen if kinds]
    points = [rules.Debt(seat, (seat + 3) % 6, rules.DebtKind.POINT, 1) for seat in range(6) if chance.random() < 0.3]
    return tuple(owed + points)


def every_command(deal: rules.Deal, seat: int) -> Iterator[c.SeatCommand]:
    """Every way the seat could lay or burn with what it holds, and every plain command."""
    for one in moves.all_sets(deal.hands[seat]):
        yield c.Lay(seat, moves.cards_of_set(one))
    for plain in PLAIN:
        yield plain(seat)


PLAIN: tuple[Any, ...] = (
    c.Pass,
    c.Cover,
    c.Yield,
    c.Decline,
    c.Apply,
    c.Agree,
    c.Refuse,
    c.Revolt,
    c.Stay,
    c.Renounce,
    c.Declare,
    c.Silent,
    c.No,
    c.Keep,
    c.HandOver,
    c.Swap,
)
