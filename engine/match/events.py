"""What happened at a table outside its deals: one frozen value per fact, with every decision already taken.

Law: `decide` computes what these carry and `evolve` copies it. The events of a deal are those of `engine.rules.events`,
unchanged. A field that is hidden until the deal is over is optional: `visibility.redacted` leaves it `None`. Time is in
them only as a number somebody else measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

from engine.match.seating import Seating
from engine.rules.events import DealEvent, Debt
from engine.rules.variant import Variant

Faces = NewType("Faces", tuple[int, ...])
"""Faces in an order that matters, such as a shuffled deck."""


@dataclass(frozen=True, slots=True)
class TableOpened:
    """A table is open. `players` by seat, empty where nobody sits."""

    variant: Variant
    seating: Seating
    ranked: bool
    players: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeatTaken:
    """The player sits in this seat (R1.1)."""

    seat: int
    player: str


@dataclass(frozen=True, slots=True)
class SeatLeft:
    """The player left the seat, which is empty now."""

    seat: int
    player: str


@dataclass(frozen=True, slots=True)
class SeatSubstituted:
    """The house put another player in this seat (R12)."""

    seat: int
    player: str


@dataclass(frozen=True, slots=True)
class ReadyChanged:
    """The seat wants the next deal to start, or does not any more; others do not see its contribution."""

    seat: int
    ready: bool
    contribution: str | None


@dataclass(frozen=True, slots=True)
class SeedCommitted:
    """The house committed to the seed of this deal; the seed itself stays hidden."""

    deal: int
    commitment: str
    seed: str | None


@dataclass(frozen=True, slots=True)
class DealCalled:
    """Time is up: the next deal starts, whether or not all are ready."""

    deal: int


@dataclass(frozen=True, slots=True)
class DealStarted:
    """A deal starts. Everything that a table is, so that it can be rebuilt from here alone.

    `deal` counts from 1, void deals too; `counted` are the deals of the match that ended with places. `rules` is the
    rule book's version. `points` by seat over the match. `places`, `debts`, `cutter`, `changed` come from the deal
    before (R1.3, R10), `first_drawer` from a void one (R7.2).
    """

    deal: int
    counted: int
    rules: str
    variant: Variant
    seating: Seating
    ranked: bool
    players: tuple[str, ...]
    barred: tuple[str, ...]
    points: tuple[int, ...]
    even_points: int
    odd_points: int
    places: tuple[int, ...]
    debts: tuple[Debt, ...]
    cutter: int | None
    changed: tuple[int, ...]
    first_drawer: int | None
    random_seat: int
    commitment: str
    seed: str | None
    contributions: tuple[str, ...] | None
    deck: Faces | None


@dataclass(frozen=True, slots=True)
class DealRevealed:
    """The deal is over and everything about its shuffle is shown (R11.4)."""

    deal: int
    commitment: str
    seed: str
    contributions: tuple[str, ...]
    deck: Faces
    random_seat: int


@dataclass(frozen=True, slots=True)
class MatchFinished:
    """The match is over after this many deals that counted. `points` by seat, penalties included."""

    deals: int
    points: tuple[int, ...]
    even_points: int
    odd_points: int


@dataclass(frozen=True, slots=True)
class TableClosed:
    """The table is closed before its match was over."""

    reason: str


@dataclass(frozen=True, slots=True)
class DeadlineExtended:
    """What is waited for lasts until then, Unix milliseconds."""

    until_ms: int


MatchEvent = (
    TableOpened
    | SeatTaken
    | SeatLeft
    | SeatSubstituted
    | ReadyChanged
    | SeedCommitted
    | DealCalled
    | DealStarted
    | DealRevealed
    | MatchFinished
    | TableClosed
    | DeadlineExtended
)
Event = MatchEvent | DealEvent
