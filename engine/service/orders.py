"""What is asked of a table and what it answers.

Law: values only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from engine import rules
from engine.match import Command, MatchReason
from engine.service.standing import Standing, Step
from engine.store.port import Deadline

HOUSE = "house"
"""The actor of what the house does by itself."""


@dataclass(frozen=True, slots=True)
class Order:
    """A command on its way to a table: who sends it, and under which id it takes effect once."""

    command_id: UUID
    actor: str
    command: Command
    trace_id: str = ""


class Accepted(NamedTuple):
    """The command is in the log; the last of its events has this version."""

    version: int


class Refused(NamedTuple):
    """Nothing happened, for this reason; the table stood at this version."""

    reason: MatchReason | rules.Reason
    version: int


Verdict = Accepted | Refused


class Look(NamedTuple):
    """Where a table stands, until when it waits, and its newest steps."""

    standing: Standing
    deadline: Deadline | None
    recent: tuple[Step, ...]
