"""How a match is scored over its deals, and when it is over.

Law: additions and one question; the points of a deal come from the rules (R6.9).
"""

from __future__ import annotations

from engine.match.state import Match


def with_deal(match: Match, even: int, odd: int) -> Match:
    """The match with a deal's points: each seat of a team is credited with what the team scored (R6.9)."""
    points = tuple(had + (even, odd)[seat % 2] for seat, had in enumerate(match.points))
    return match._replace(
        points=points,
        even_points=match.even_points + even,
        odd_points=match.odd_points + odd,
        counted=match.counted + 1,
    )


def with_dock(match: Match, seat: int, points: int) -> Match:
    """The match with points taken from the seat's own total; the team keeps its points (R12)."""
    return match._replace(points=tuple(had - points * (one == seat) for one, had in enumerate(match.points)))


def is_decided(match: Match) -> bool:
    """Whether the deals that counted make up the match, or a team has the points that end it; 0 is no such limit."""
    deals, points = match.variant.match_deals, match.variant.match_points
    return 0 < deals <= match.counted or 0 < points <= max(match.even_points, match.odd_points)
