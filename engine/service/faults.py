"""The engine's own ways of not judging a request, beside those of `engine.runtime.faults`.

Law: kinds of faults by what the caller should do; no transport, no driver, no game.
"""

from __future__ import annotations

from engine.runtime.faults import FailedPrecondition, Unavailable


class NotLeading(Unavailable):
    """The table is led elsewhere now, or nobody can say what became of the command: ask again, same id."""


class Quarantined(FailedPrecondition):
    """A fault set this table aside until an operator has looked; its log is intact."""

    reason = "QUARANTINED"
