"""A table between and during its deals, as one frozen value.

Law: what a match is and plain questions about it; who changes it is `evolve`, why is `decide`. No clock: the shell
knows when a deadline is, the match only what is waited for.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from engine import rules
from engine.match.events import DealStarted
from engine.match.seating import NOBODY, SEATS, Seating
from engine.rules.events import Debt
from engine.rules.variant import Variant

NOT_READY = (False,) * 6
NO_CONTRIBUTIONS = ("",) * 6


class Phase(StrEnum):
    """Where a table is in its life."""

    GATHERING = "gathering"
    PLAYING = "playing"
    BETWEEN_DEALS = "between_deals"
    FINISHED = "finished"
    CLOSED = "closed"


class Match(NamedTuple):
    """Six seats and the series of deals they play.

    `players` by seat, `NOBODY` where a seat is empty; `()` before the table is opened. `points` by seat, penalties
    included. `counted`: deals that ended with places. `started`: the newest deal's start, `deal` its state, kept until
    the next one starts. `commitment`, `seed`, `contributions` are those of the next deal. `drawer`: the newest deal's
    first drawer; `voided`: it was void. `acted`: some seat played by itself in it; `overdue`: the seat for which the
    house is playing right now. `turn` counts what was waited for since the deal started. `extended_to_ms`: until when
    the present wait was extended, 0 if it was not.
    """

    phase: Phase = Phase.CLOSED
    variant: Variant = Variant()
    seating: Seating = Seating.CHOSEN_TEAMS
    ranked: bool = False
    players: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()
    ready: tuple[bool, ...] = NOT_READY
    called: bool = False
    deal_number: int = 0
    counted: int = 0
    started: DealStarted | None = None
    deal: rules.Deal | None = None
    points: tuple[int, ...] = (0,) * 6
    even_points: int = 0
    odd_points: int = 0
    places: tuple[int, ...] = ()
    debts: tuple[Debt, ...] = ()
    cutter: int | None = None
    drawer: int | None = None
    voided: bool = False
    commitment: str = ""
    seed: str = ""
    contributions: tuple[str, ...] = NO_CONTRIBUTIONS
    acted: bool = False
    overdue: int | None = None
    turn: int = 0
    extended_to_ms: int = 0


EMPTY = Match()


class WaitKind(StrEnum):
    """What a table waits for."""

    GATHERING = "gathering"
    BETWEEN = "between"
    TURN = "turn"
    WINDOW = "window"


class Waiting(NamedTuple):
    """For whom a table waits. As long as `since` stays the same it is the same wait, and its deadline stands."""

    kind: WaitKind
    seats: tuple[int, ...]
    since: tuple[int, int]


def is_over(match: Match) -> bool:
    """Whether nothing can happen at this table any more."""
    return match.phase in {Phase.FINISHED, Phase.CLOSED}


def is_full(match: Match) -> bool:
    """Whether somebody sits in every seat."""
    return bool(match.players) and NOBODY not in match.players


def seat_of(match: Match, player: str) -> int | None:
    """The seat of this player."""
    return match.players.index(player) if player != NOBODY and player in match.players else None


def waiting(match: Match) -> Waiting | None:
    """For whom the table waits now; None when it is over."""
    since = (match.deal_number, match.turn)
    if match.deal is not None and match.phase is Phase.PLAYING:
        kind = WaitKind.TURN if match.deal.window is None else WaitKind.WINDOW
        return Waiting(kind, rules.waiting(match.deal), since)
    if is_over(match):
        return None
    if match.phase is Phase.GATHERING and not is_full(match):
        return Waiting(WaitKind.GATHERING, _seats_without(match.players), since)
    return Waiting(WaitKind.BETWEEN, _seats_without(match.ready), since)


def _seats_without(what: tuple[str, ...] | tuple[bool, ...]) -> tuple[int, ...]:
    return tuple(seat for seat in SEATS if not what[seat])


def legal_moves(match: Match, seat: int) -> rules.LegalMoves:
    """Everything that this seat may do in the deal now (R14.9): nothing before the first deal and after the last."""
    if match.deal is None or is_over(match):
        return rules.LegalMoves()
    return rules.legal_moves(match.deal, seat)


def wants_commitment(match: Match) -> bool:
    """Whether the house shall commit to the next deal's seed now."""
    return _is_between(match) and not match.commitment


def wants_deal(match: Match) -> bool:
    """Whether the house shall deal now: six seats are taken, and all are ready or time is up."""
    return _is_between(match) and is_full(match) and bool(match.commitment) and (match.called or all(match.ready))


def _is_between(match: Match) -> bool:
    return match.phase in {Phase.GATHERING, Phase.BETWEEN_DEALS}
