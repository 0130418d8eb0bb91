"""Seats round a table and sets of seats as bit masks.

Law: only arithmetic of six seats lives here (R0, R1.1); who plays, leads or has passed is state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

SEATS = range(6)
NOBODY = 0
EVERYBODY = 0b111111
TEAMS = (0b010101, 0b101010)
"""The even and the odd team as masks."""

AFTER = tuple(tuple((seat + step) % 6 for step in range(1, 6)) for seat in SEATS)
"""The other five seats in order of play from a seat on."""

BIT = tuple(1 << seat for seat in SEATS)
MEMBERS = tuple(tuple(seat for seat in SEATS if mask >> seat & 1) for mask in range(64))
"""The seats of a mask, ascending."""


def opposite(seat: int) -> int:
    """The enemy one duels with."""
    return (seat + 3) % 6


def team(seat: int) -> int:
    """0 for even seats, 1 for odd ones."""
    return seat % 2


def teammates(seat: int) -> tuple[int, int]:
    """The two teammates, nearest in order of play first."""
    return (seat + 2) % 6, (seat + 4) % 6


def mask_of(seats: Iterable[int]) -> int:
    """The mask of these seats."""
    return sum(BIT[seat] for seat in set(seats))


def has(mask: int, seat: int) -> bool:
    """Whether the seat belongs to the mask."""
    return bool(mask >> seat & 1)


def from_seat(first: int) -> Iterator[int]:
    """All six seats in order of play, `first` included."""
    yield first
    yield from AFTER[first]


def next_of(mask: int, seat: int) -> int | None:
    """The next seat of the mask after this one, itself excluded."""
    return next((other for other in AFTER[seat] if mask >> other & 1), None)
