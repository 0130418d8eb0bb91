"""How long a table waits for whom, as a deadline of the log.

Law: pure. A deadline belongs to a wait and stays the same as long as the wait does; the version at which the wait began
is its fence. All seats of a window have the same time, whatever they hold (R11.3).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import match
from engine.match import Match, WaitKind
from engine.store.port import Deadline


@dataclass(frozen=True, slots=True)
class Spans:
    """How long each kind of wait lasts, and how late a deadline may be noticed and still be enforced, milliseconds."""

    turn_ms: int = 20_000
    window_ms: int = 5_000
    between_ms: int = 30_000
    gathering_ms: int = 1_800_000
    late_ms: int = 3_000

    def of(self, kind: WaitKind) -> int:
        """How long a wait of this kind lasts."""
        return {
            WaitKind.TURN: self.turn_ms,
            WaitKind.WINDOW: self.window_ms,
            WaitKind.BETWEEN: self.between_ms,
            WaitKind.GATHERING: self.gathering_ms,
        }[kind]


def is_houses_turn(table: Match) -> bool:
    """Whether the table waits for nobody but the house, which then acts at once."""
    return match.wants_commitment(table) or match.wants_deal(table)


def deadline_after(
    before: Match, after: Match, old: Deadline | None, *, version: int, at_ms: int, spans: Spans
) -> Deadline | None:
    """The deadline of a table that came to `version` at `at_ms`; None when it waits for nothing any more.

    When it is the house's turn the deadline is now: should the house fail to act, the next leader does at once.
    """
    wait = match.waiting(after)
    if wait is None:
        return None
    if is_houses_turn(after):
        return Deadline(at_ms, version)
    is_same = old is not None and not is_houses_turn(before) and _since(before) == wait.since
    if old is None or not is_same:
        return Deadline(at_ms + spans.of(wait.kind), version)
    return Deadline(after.extended_to_ms or old.at_ms, old.since_version)


def full_time(table: Match, now_ms: int, spans: Spans) -> int:
    """Until when the present wait lasts if it begins again now."""
    return now_ms + _span(table, spans)


def shown_ms(table: Match, deadline: Deadline | None) -> int:
    """A deadline as players are shown it, Unix milliseconds; 0 when nobody but the house is waited for, if anybody."""
    return 0 if deadline is None or is_houses_turn(table) else deadline.at_ms


def was_down(table: Match, deadline: Deadline, now_ms: int, steady_since_ms: int, spans: Spans) -> bool:
    """Whether the house was out of reach when this deadline passed, or just before it, so that it must not count.

    That is when it is noticed late; or when the wait began before the house became steady and ended hardly after.
    """
    is_old = deadline.at_ms - _span(table, spans) < steady_since_ms
    is_noticed_late = now_ms - deadline.at_ms > spans.late_ms
    return is_noticed_late or (is_old and deadline.at_ms < steady_since_ms + spans.late_ms)


def _span(table: Match, spans: Spans) -> int:
    wait = match.waiting(table)
    return spans.of(wait.kind) if wait else 0


def _since(table: Match) -> tuple[int, int] | None:
    wait = match.waiting(table)
    return wait.since if wait else None
