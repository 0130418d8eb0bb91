"""What a result does to the standings: the one fold that live service and rebuild share.

Law: pure; the same results in the same order give the same standings to the last bit. Who has no standing yet is a
newcomer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from services.ranking import rating
from services.ranking.rating import Skill


@dataclass(frozen=True, slots=True)
class Standing:
    """A player's skill, and in how many rated deals and matches he played."""

    skill: Skill = field(default_factory=Skill)
    deals: int = 0
    matches: int = 0

    @property
    def shown(self) -> int:
        """The rating that players see."""
        return rating.shown(self.skill)


@dataclass(frozen=True, slots=True)
class DealResult:
    """A ranked deal that was played to its end. `players` by seat, `places` the seats from first to last."""

    players: Sequence[str]
    places: Sequence[int]
    even_points: int
    odd_points: int


@dataclass(frozen=True, slots=True)
class MatchResult:
    """A ranked match that was played to its end. It is counted; its deals were rated one by one."""

    players: Sequence[str]


Result = DealResult | MatchResult


def changed(standings: Mapping[str, Standing], result: Result) -> dict[str, Standing]:
    """Give the new standings of the players that a result touches."""
    before = {player_id: standings.get(player_id, Standing()) for player_id in result.players}
    match result:
        case DealResult():
            return _rated(before, result)
        case MatchResult():
            return {player_id: replace(old, matches=old.matches + 1) for player_id, old in before.items()}


def _rated(before: Mapping[str, Standing], deal: DealResult) -> dict[str, Standing]:
    skills = [before[player_id].skill for player_id in deal.players]
    after = rating.rated(skills, deal.places, deal.even_points, deal.odd_points)
    return {
        player_id: replace(before[player_id], skill=skill, deals=before[player_id].deals + 1)
        for player_id, skill in zip(deal.players, after, strict=True)
    }
