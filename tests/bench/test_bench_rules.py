"""The speed of the core on one core: folding, deciding, whole deals, lists of moves."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine import rules
from engine.rules import cards, moves
from engine.rules import commands as c
from engine.service.simulation import shuffled
from tests.support.play import fold, steps

CHARTER = rules.VARIANTS["qingdao-charter"]


def _setup(seed: int) -> rules.Setup:
    chance = random.Random(seed)
    return rules.Setup(CHARTER, shuffled(CHARTER, chance))


@pytest.fixture(scope="module")
def played() -> list[Any]:
    return [list(steps(_setup(seed), random.Random(seed))) for seed in range(20)]


def _rate(benchmark: Any, number: int) -> None:
    benchmark.extra_info["per_second"] = round(number / benchmark.stats["min"])


def test_fold(benchmark: Any, played: list[Any]) -> None:
    logs = [(deal[0][0], tuple(event for step in deal for event in step[2])) for deal in played]

    benchmark(lambda: [fold(start, log) for start, log in logs])

    _rate(benchmark, sum(len(log) for _, log in logs))


def test_decide(benchmark: Any, played: list[Any]) -> None:
    asked = [(step[0], step[1]) for deal in played for step in deal]

    benchmark(lambda: [rules.decide(deal, command) for deal, command in asked])

    _rate(benchmark, len(asked))


def test_random_deals(benchmark: Any) -> None:
    benchmark(lambda: any(_random_deal(seed) == 0 for seed in range(10)))

    _rate(benchmark, 10)


def _random_deal(seed: int) -> int:
    """Lays a random single rank or passes, so that the rules take the time and not the players."""
    chance = random.Random(seed)
    deal = rules.open_deal(_setup(seed))
    command: c.Command = c.Begin()
    while True:
        events = rules.decide(deal, command)
        if isinstance(events, rules.Refused):
            command = moves.stand_in(deal, rules.waiting(deal)[0])
            continue
        deal = fold(deal, events)
        if rules.is_over(deal):
            return len(deal.places)
        seat = rules.waiting(deal)[0]
        command = _random_command(deal, seat, chance)


def _random_command(deal: rules.Deal, seat: int, chance: random.Random) -> c.Command:
    if deal.window is not None or deal.phase is not rules.Phase.PLAY:
        return moves.stand_in(deal, seat)
    faces = list(cards.faces_of(deal.hands[seat]))
    rank = cards.rank_of(chance.choice(faces))
    wanted = cards.size(deal.trick.cards) or cards.count(deal.hands[seat], rank)
    return c.Lay(seat, cards.cards_of([cards.face(rank)] * wanted))


def test_complete_list_of_moves_with_36_cards(benchmark: Any) -> None:
    deals = []
    for seed in range(20):
        deal = next(iter(steps(_setup(seed), random.Random(seed))))[3]
        while deal.phase is not rules.Phase.PLAY:
            deal = fold(deal, _accepted(deal))
        deals.append(deal)

    benchmark(lambda: [moves.sets_to_lay(deal, deal.leader) for deal in deals])

    benchmark.extra_info["median_ms_per_position"] = round(benchmark.stats["median"] / len(deals) * 1000, 3)


def _accepted(deal: rules.Deal) -> tuple[rules.DealEvent, ...]:
    events = rules.decide(deal, c.TimeOut(rules.waiting(deal)[0]))
    assert not isinstance(events, rules.Refused)
    return events
