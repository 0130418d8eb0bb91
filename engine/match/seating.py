"""Who sits where: the three ways in which teams are formed (R1.1).

Law: pure functions from players, a wish and the house's random order to seats; nothing here knows a match.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

SEATS = range(6)
NOBODY = ""
EMPTY_SEATS = (NOBODY,) * 6


class Seating(StrEnum):
    """How teams are formed (R1.1)."""

    CHOSEN_TEAMS = "chosen_teams"
    CHOSEN_OPPOSITES = "chosen_opposites"
    DRAW = "draw"


def seated(seating: Seating, players: Sequence[str], draw: Sequence[int]) -> tuple[str, ...]:
    """Six players who sit down together, by seat.

    Chosen teams sit as listed. Chosen opposites, listed three apart, stay opposite; with nobody to wish, the draw says
    who of each pair plays for the even team. A draw gives everyone the seat drawn.
    """
    if seating is Seating.CHOSEN_TEAMS:
        return tuple(players)
    if seating is Seating.DRAW:
        return tuple(players[draw.index(seat)] for seat in SEATS)
    return tuple(players[_partner(seat, draw)] for seat in SEATS)


def _partner(seat: int, draw: Sequence[int]) -> int:
    """The seat itself, or its opposite where the draw names the opposite seat first."""
    pair = seat % 3
    swapped = draw.index(pair + 3) < draw.index(pair)
    return (seat + 3) % 6 if swapped else seat


def seat_for(seating: Seating, players: Sequence[str], wish: int, draw: Sequence[int]) -> int | None:
    """The seat that somebody who sits down gets, None if it is taken.

    With chosen teams it is the seat wished for. With chosen opposites the wish names a pair and a team: whoever comes
    second gets the other seat of the pair. With a draw it is the first free seat drawn.
    """
    if seating is Seating.DRAW:
        return _first_free(players, draw)
    if seating is Seating.CHOSEN_OPPOSITES:
        return _first_free(players, (wish, (wish + 3) % 6))
    return _first_free(players, (wish,))


def _first_free(players: Sequence[str], seats: Sequence[int]) -> int | None:
    return next((seat for seat in seats if players[seat] == NOBODY), None)


def placed(players: tuple[str, ...], seat: int, player: str) -> tuple[str, ...]:
    """The players with this one in this seat."""
    return (*players[:seat], player, *players[seat + 1 :])


def changed_hands(before: Sequence[str], now: Sequence[str]) -> tuple[int, ...]:
    """The seats that another player holds now (R1.3)."""
    return tuple(seat for seat in SEATS if before[seat] != now[seat])
