"""Deals played in process by simple players, every law checked at every event, every rule that fires counted.

Law: no log, no bus, no clock; chance comes in as a `random.Random`. For `gouji simulate`, benches and property tests.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

from engine import rules
from engine.rules import commands as c
from engine.rules import moves
from engine.rules.cards import BIG, SMALL, THREE, TWO, Cards, count, only, rank_of
from engine.rules.cases import event_name, name_of
from engine.rules.events import Phase, WindowKind
from engine.rules.laws import broken, broken_between
from engine.rules.scoring import is_sweep
from engine.rules.seats import teammates
from engine.rules.sets import CardSet

EVENT_NAMES = tuple(name_of(kind.__name__) for kind in get_args(rules.DealEvent))
LONGEST_DEAL = 20_000
"""Commands after which a deal is taken to go on for ever."""

STACKED = 0.02
"""How often a deck is stacked so that two seats may revolt."""
TALKS = 0.1
"""How often a player thinks of advice when it is to act."""

Player = Callable[[rules.Deal, int, random.Random], c.Command]


class LawBroken(Exception):
    """A law of the game does not hold: the rules are wrong."""


@dataclass(slots=True)
class Tally:
    """What happened in many deals. Events are counted by their names in the notation."""

    deals: int = 0
    commands: int = 0
    events: Counter[str] = field(default_factory=Counter)
    points: Counter[int] = field(default_factory=Counter)
    sweeps: int = 0
    voids: int = 0

    def never(self) -> list[str]:
        """The events that did not happen once."""
        return sorted(set(EVENT_NAMES) - set(self.events))

    def per_deal(self) -> float:
        """Commands a deal."""
        return self.commands / max(self.deals, 1)

    def summary(self) -> dict[str, object]:
        """Everything counted, by name, for programs."""
        return {
            "deals": self.deals,
            "commands": self.commands,
            "events": dict(sorted(self.events.items())),
            "never": self.never(),
            "points": {str(value): times for value, times in sorted(self.points.items())},
            "sweeps": self.sweeps,
            "voids": self.voids,
        }

    def add(self, other: Tally) -> None:
        """Take in another tally."""
        self.deals += other.deals
        self.commands += other.commands
        self.events.update(other.events)
        self.points.update(other.points)
        self.sweeps += other.sweeps
        self.voids += other.voids


def shuffled(variant: rules.Variant, chance: random.Random) -> tuple[int, ...]:
    """The deck of the variant in a random order."""
    deck = list(rules.full_deck(variant))
    chance.shuffle(deck)
    return tuple(deck)


def stacked(variant: rules.Variant, deck: tuple[int, ...], chance: random.Random) -> tuple[int, ...]:
    """The deck with two hands that may revolt, which chance alone deals once in thousands of deals (R7.2)."""
    lucky = chance.sample(range(6), 2)
    forbidden = {TWO, SMALL, BIG, *((THREE,) if variant.threes_last else ())}
    cards = list(deck)
    plain = [at for at, one in enumerate(cards) if at % 6 not in lucky and rank_of(one) not in forbidden]
    for at, one in enumerate(cards):
        if at % 6 in lucky and rank_of(one) in forbidden and plain:
            other = plain.pop()
            cards[at], cards[other] = cards[other], one
    return tuple(cards)


def series(variant: rules.Variant, deals: int, chance: random.Random, players: tuple[Player, ...]) -> Tally:
    """Play deal after deal as one match: places, debts and the cut are carried over, seats change hands at times."""
    tally = Tally()
    setup = rules.Setup(variant, shuffled(variant, chance), random_seat=chance.randrange(6))
    for _ in range(deals):
        deal = play_deal(setup, chance, players, tally)
        setup = _next_setup(deal, chance)
    return tally


def _next_setup(deal: rules.Deal, chance: random.Random) -> rules.Setup:
    deck = shuffled(deal.variant, chance)
    if chance.random() < STACKED:
        deck = stacked(deal.variant, deck, chance)
    fresh = deal.setup._replace(deck=deck, random_seat=chance.randrange(6))
    if deal.phase is Phase.VOID:
        return fresh._replace(first_drawer=deal.first_drawer, cutter=deal.cutter)
    changed = tuple(chance.sample(range(6), 2)) if chance.random() < 0.05 else ()
    return fresh._replace(
        places=deal.places, debts=deal.debts_left, cutter=deal.cutter, changed=changed, first_drawer=None
    )


def play_deal(setup: rules.Setup, chance: random.Random, players: tuple[Player, ...], tally: Tally) -> rules.Deal:
    """Play one deal to its end and count it; raises `LawBroken`."""
    deal = _take(rules.open_deal(setup), c.Begin(), tally)
    for _ in range(LONGEST_DEAL):
        if rules.is_over(deal):
            _count(deal, tally)
            return deal
        seat = chance.choice(rules.waiting(deal))
        deal = _take(deal, _command(deal, seat, chance, players), tally)
    raise LawBroken("R14.4: the deal does not end")


def _command(deal: rules.Deal, seat: int, chance: random.Random, players: tuple[Player, ...]) -> c.Command:
    """Mostly the player's choice; sometimes its time runs out or the house steps in (R12)."""
    throw = chance.random()
    if throw < 0.002:
        return c.TimeOut(seat)
    if throw < 0.0025 and deal.phase is Phase.PLAY:
        return chance.choice((c.Forfeit(seat), c.Warn(seat), c.JudgeLast(seat), c.Disqualify(seat), c.Dock(seat, 2)))
    return players[seat % len(players)](deal, seat, chance)


def _take(deal: rules.Deal, command: c.Command, tally: Tally) -> rules.Deal:
    events = rules.decide(deal, command)
    if isinstance(events, rules.Refused):
        raise LawBroken(f"R14.9: {command} was offered and refused with {events.reason.name}")
    tally.commands += 1
    for event in events:
        before, deal = deal, rules.evolve(deal, event)
        tally.events[event_name(event)] += 1
        for problem in broken_between(before, event, deal):
            raise LawBroken(problem)
    for problem in broken(deal):
        raise LawBroken(problem)
    return deal


def _count(deal: rules.Deal, tally: Tally) -> None:
    tally.deals += 1
    if deal.phase is Phase.VOID:
        tally.voids += 1
        return
    tally.points[max(deal.points)] += 1
    tally.sweeps += is_sweep(deal.places)
    if deal.variant.swap_last and not (deal.places[4] - deal.places[5]) % 2:
        _take(_take(deal, c.Swap(deal.places[4]), tally), c.Agree(deal.places[5]), tally)


# Simple players


def thrifty(deal: rules.Deal, seat: int, chance: random.Random) -> c.Command:
    """Lays the smallest sets, keeps ranks together and jokers to the end, burns when it can."""
    return _plain(deal, seat, chance, daring=0.75)


def careless(deal: rules.Deal, seat: int, chance: random.Random) -> c.Command:
    """Does anything that is allowed, each with the same chance."""
    choices = choose_from(deal, seat, chance)
    return chance.choice(choices)


def _plain(deal: rules.Deal, seat: int, chance: random.Random, daring: float) -> c.Command:
    if deal.window is not None or deal.phase is not Phase.PLAY:
        return chance.choice(choose_from(deal, seat, chance))
    sets = moves.sets_to_lay(deal, seat)
    if deal.trick.owner is None:
        return c.Lay(seat, moves.cards_of_set(_lead(deal.hands[seat], sets)))
    cheap = [one for one in sets if not one.jokers] or sets
    if cheap and chance.random() < daring:
        return c.Lay(seat, moves.cards_of_set(cheap[0]))
    return chance.choice(_noes(deal, seat))


def _lead(hand: Cards, sets: list[CardSet]) -> CardSet:
    """The lowest rank, all of it, without anything attached, unless only more is left."""
    whole = [one for one in sets if one.naturals and one.size == one.naturals == count(hand, one.base)]
    return min(whole, key=lambda one: one.base) if whole else sets[0]


def _noes(deal: rules.Deal, seat: int) -> list[c.Command]:
    wishes = (c.Pass(seat), c.Cover(seat), c.Yield(seat), c.Apply(seat), c.Renounce(seat))
    return [wish for wish in wishes if not isinstance(rules.decide(deal, wish), rules.Refused)]


def choose_from(deal: rules.Deal, seat: int, chance: random.Random) -> list[c.Command]:
    """A few commands that are allowed now, of every kind that is."""
    if deal.window is not None:
        return _answers(deal, seat, deal.window.kind, chance)
    if deal.phase is not Phase.PLAY:
        return _preparations(deal, seat)
    sets = moves.sets_to_lay(deal, seat)
    lays: list[c.Command] = [c.Lay(seat, moves.cards_of_set(one)) for one in _some(sets, chance)]
    said = _advice(deal, seat, chance) if chance.random() < TALKS else []
    if deal.trick.owner is not None:
        return [*lays, *_noes(deal, seat), *said]
    return [*lays, *_if_allowed(deal, c.HandOver(seat), c.Renounce(seat)), *said]


def _advice(deal: rules.Deal, seat: int, chance: random.Random) -> list[c.Command]:
    """What may be said of hands: consulting, suggesting, asking (R11)."""
    mate = chance.choice(teammates(seat))
    singles = list(moves.all_sets(deal.hands[mate], frozenset({1})))
    suggestions = [c.Suggest(seat, mate, moves.cards_of_set(one)) for one in singles[:1]]
    return _if_allowed(deal, c.Consult(seat, mate), c.Ask(seat, chance.randrange(6)), *suggestions)


def _some(sets: list[CardSet], chance: random.Random) -> list[CardSet]:
    return chance.sample(sets, min(3, len(sets)))


def _if_allowed(deal: rules.Deal, *wishes: c.Command) -> list[c.Command]:
    return [wish for wish in wishes if not isinstance(rules.decide(deal, wish), rules.Refused)]


def _answers(deal: rules.Deal, seat: int, kind: WindowKind, chance: random.Random) -> list[c.Command]:
    no = moves.stand_in(deal, seat)
    if kind in (WindowKind.BURN, WindowKind.COUNTER):
        sets = moves.sets_to_burn_with(deal, seat)
        burns: list[c.Command] = [c.Burn(seat, moves.cards_of_set(one)) for one in _some(sets, chance)]
        return burns if burns and chance.random() < 0.7 else [no]
    if kind is WindowKind.ORDER:
        return [no, c.Order(seat, _in_order(deal))]
    agreeing = _if_allowed(deal, _YES[kind](seat))
    return agreeing if agreeing and chance.random() < 0.7 else [no]


_YES: dict[WindowKind, Callable[[int], c.Command]] = {
    WindowKind.REVOLUTION: c.Revolt,
    WindowKind.DECLARE: c.Declare,
    WindowKind.WINDFALL: c.Agree,
}


def _in_order(deal: rules.Deal) -> tuple[Cards, ...]:
    """The hand that is handed over, rank by rank, 3s last."""
    hand = deal.hands[deal.advice.ordering or 0]
    ranks = [rank for rank in (*range(1, 15), 0) if only(hand, rank)]
    return tuple(only(hand, rank) for rank in ranks)


def _preparations(deal: rules.Deal, seat: int) -> list[c.Command]:
    default = moves.stand_in(deal, seat)
    if deal.phase is Phase.BUY and deal.preparation.offer is not None:
        return [c.Buy(seat, deal.preparation.offer[1]), default]
    if deal.phase is Phase.DISCARD:
        return [default, *_if_allowed(deal, *(c.Discard(seat, (rank,)) for rank in deal.variant.discard))]
    return [default]


TABLE: tuple[Player, ...] = (thrifty, careless, thrifty, thrifty, careless, careless)
"""Who sits where: both teams have both kinds."""
