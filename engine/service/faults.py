"""The engine's own ways of not judging a request, beside those of `engine.runtime.faults`.

Law: kinds of faults by what the caller should do, and how one of the rules is named; no transport, no driver, no game.
"""

from __future__ import annotations

import traceback

from engine.runtime.faults import FailedPrecondition, Unavailable


class NotLeading(Unavailable):
    """The table is led elsewhere now, or nobody can say what became of the command: ask again, same id."""


class Quarantined(FailedPrecondition):
    """A fault set this table aside until an operator has looked; its log is intact."""

    reason = "QUARANTINED"


def fault_of(error: Exception) -> str:
    """What broke and where, without its text, which might name a card."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {place.name}:{place.lineno}"
