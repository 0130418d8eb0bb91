"""What a result does to six ratings.

Law: pure; knows no storage, no message and no clock. A rating is two numbers, `mu` (estimated strength) and `sigma` (how
unsure the estimate is), by the Bradley-Terry model with full pairing: one update over all six seats of a deal, six sides
of one player each, ranked by their places.

The shown rating is `max(0, round(1000 + 40 * (mu - 3 * sigma)))`: what a player has very probably earned. A newcomer
shows 1000. Nobody's `sigma` ever grows, so whoever's `mu` does not fall shows no less than before. That holds

- for the first place: the model itself never lowers him, he has beaten everybody;
- for the first finisher of the side that won on points: were the model to lower him (a favourite who came second), his
  `mu` stays, and the others pay for it in equal shares, so that protecting a winner does not inflate the board.

`sigma` never falls below a floor either, so that an old hand's rating still moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from openskill.models import BradleyTerryFull

SEATS = 6
MU = 25.0
SIGMA = MU / 3
SIGMA_FLOOR = 1.0
_MODEL = BradleyTerryFull(mu=MU, sigma=SIGMA, tau=0.0, limit_sigma=True)


@dataclass(frozen=True, slots=True)
class Skill:
    """An estimate of a player's strength and its standard deviation, on the model's own scale."""

    mu: float = MU
    sigma: float = SIGMA


def shown(skill: Skill) -> int:
    """Give the rating that players see."""
    return max(0, round(1000 + 40 * (skill.mu - 3 * skill.sigma)))


def rated(skills: Sequence[Skill], places: Sequence[int], even_points: int, odd_points: int) -> tuple[Skill, ...]:
    """Rate one deal. `skills` and the answer are by seat, `places` are the seats from first to last."""
    judged = _judged(skills, places)
    winners = _winners(places, even_points, odd_points)
    lifts = [max(0.0, old.mu - new.mu) if seat in winners else 0.0 for seat, (old, new) in _pairs(skills, judged)]
    share = sum(lifts) / (SEATS - len(winners))
    return tuple(
        replace(new, mu=max(old.mu, new.mu) if seat in winners else new.mu - share)
        for seat, (old, new) in _pairs(skills, judged)
    )


def _judged(skills: Sequence[Skill], places: Sequence[int]) -> list[Skill]:
    """Ask the model, with every `sigma` kept between the floor and what it was."""
    sides = [[_MODEL.rating(mu=skill.mu, sigma=skill.sigma)] for skill in skills]
    rates = _MODEL.rate(sides, ranks=[float(places.index(seat)) for seat in range(SEATS)])
    return [
        Skill(mu=side[0].mu, sigma=min(old.sigma, max(SIGMA_FLOOR, side[0].sigma)))
        for old, side in zip(skills, rates, strict=True)
    ]


def _winners(places: Sequence[int], even_points: int, odd_points: int) -> set[int]:
    """Name the seats whose rating must not fall: the first place, and the winning side's first finisher."""
    winners = {places[0]}
    if even_points != odd_points:
        parity = 0 if even_points > odd_points else 1
        winners.add(next(seat for seat in places if seat % 2 == parity))
    return winners


def _pairs(old: Sequence[Skill], new: Sequence[Skill]) -> list[tuple[int, tuple[Skill, Skill]]]:
    return list(enumerate(zip(old, new, strict=True)))
