"""What players and the house may ask of a table: one frozen value per command, imperatives.

Law: commands carry a wish, the name of who wishes, and the house's randomness as data; nothing decided. A player is an
opaque id: which seat he holds is the match's business. The house's commands on a seat of a running deal are those of
`engine.rules.commands`, unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.match.events import Faces
from engine.match.seating import Seating
from engine.rules.commands import Disqualify, Dock, Forfeit, JudgeLast, SeatCommand, TimeOut, Warn
from engine.rules.variant import Variant

IN_ORDER = (0, 1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class OpenTable:
    """Open a table; its match lasts `variant.match_deals` deals. A rematch is a new table opened for the same players.

    `players` are seated at once, or there are none. `draw` is a random order of the six seats (R1.1).
    """

    variant: Variant
    seating: Seating = Seating.CHOSEN_TEAMS
    players: tuple[str, ...] = ()
    ranked: bool = False
    draw: tuple[int, ...] = IN_ORDER


@dataclass(frozen=True, slots=True)
class TakeSeat:
    """Sit down. What `seat` means depends on how teams are formed; `draw` is a random order of the seats (R1.1)."""

    player: str
    seat: int
    draw: tuple[int, ...] = IN_ORDER


@dataclass(frozen=True, slots=True)
class LeaveSeat:
    """Give up one's seat; not while a deal runs."""

    player: str


@dataclass(frozen=True, slots=True)
class SetReady:
    """Say whether one wants the next deal to start. `contribution`: hex digits for the next shuffle, may be empty."""

    player: str
    ready: bool
    contribution: str = ""


@dataclass(frozen=True, slots=True)
class Play:
    """Act in the running deal. The seat written in `command` does not count: the match knows where the player sits."""

    player: str
    command: SeatCommand


@dataclass(frozen=True, slots=True)
class CommitSeed:
    """The house: bind yourself to the seed (hex) of the next deal by its hash, before any seat contributes."""

    seed: str
    commitment: str


@dataclass(frozen=True, slots=True)
class CallDeal:
    """The house: time is up, start the next deal whether or not all are ready."""


@dataclass(frozen=True, slots=True)
class StartDeal:
    """The house: deal these cards. `deck` is in dealing order; `random_seat` is for R1.4."""

    deck: Faces
    random_seat: int


@dataclass(frozen=True, slots=True)
class Substitute:
    """The house: put this player in the seat of another or in an empty one (R12)."""

    seat: int
    player: str


@dataclass(frozen=True, slots=True)
class ExtendDeadline:
    """The house was down: what is waited for lasts until then, Unix milliseconds."""

    until_ms: int


@dataclass(frozen=True, slots=True)
class CloseTable:
    """The house: end the match now, without a result."""

    reason: str


PlayerCommand = TakeSeat | LeaveSeat | SetReady | Play
TableCommand = CommitSeed | CallDeal | StartDeal | Substitute | ExtendDeadline | CloseTable
PenaltyCommand = TimeOut | Warn | Forfeit | Dock | JudgeLast | Disqualify
Command = OpenTable | PlayerCommand | TableCommand | PenaltyCommand
