"""What a house player sees and may wish for: plain values.

Law: no proto, no transport, no thought. Names of kinds and phases are those of the protos without their prefixes.
"""

from __future__ import annotations

from dataclasses import dataclass

LETTERS = "3456789TJQKA2sb"
OVER = frozenset({"FINISHED", "CLOSED"})
WAITING = frozenset({"GATHERING", "BETWEEN_DEALS"})


@dataclass(frozen=True, slots=True)
class Option:
    """One kind of action that would be accepted now, with its hints and the seats that may be named."""

    kind: str
    hints: tuple[str, ...] = ()
    seats: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Sight:
    """The table as the player's seat sees it at a version. `owner` is whose set lies on the table, if one does."""

    version: int
    phase: str
    seat: int
    is_ready: bool
    may_contribute: bool
    hand: str
    options: tuple[Option, ...]
    owner: int | None
    deal: int
    points: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """An action: its kind and whichever of the other fields that kind reads."""

    kind: str
    cards: str = ""
    ranks: str = ""
    seat: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a command: accepted at a version, refused with a reason, or not judged because of a fault."""

    command_id: str
    accepted_at: int | None = None
    refused: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class News:
    """A frame that moved the stream on: the version now reached and the sight, if the frame had one."""

    version: int
    sight: Sight | None = None


Received = Answer | News
