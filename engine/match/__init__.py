"""The table as players know it: seats, readiness, the series of deals and its standings.

Law: pure. `decide(match, command)` answers with events or a refusal, `evolve(match, event)` copies them into the next
state; `waiting` tells for whom the table waits, `due` what the house does when time is up.
"""

from engine.match.commands import (
    CallDeal,
    CloseTable,
    Command,
    CommitSeed,
    ExtendDeadline,
    LeaveSeat,
    OpenTable,
    Play,
    SetReady,
    StartDeal,
    Substitute,
    TakeSeat,
)
from engine.match.decide import Decision, MatchReason, Refused, begin, decide, due
from engine.match.events import Event, Faces, MatchEvent
from engine.match.evolve import evolve, fold
from engine.match.rematch import rematch
from engine.match.seating import NOBODY, SEATS, Seating
from engine.match.state import (
    EMPTY,
    Match,
    Phase,
    Waiting,
    WaitKind,
    is_full,
    is_over,
    legal_moves,
    seat_of,
    waiting,
    wants_commitment,
    wants_deal,
)
from engine.match.visibility import redacted

__all__ = [
    "EMPTY",
    "NOBODY",
    "SEATS",
    "CallDeal",
    "CloseTable",
    "Command",
    "CommitSeed",
    "Decision",
    "Event",
    "ExtendDeadline",
    "Faces",
    "LeaveSeat",
    "Match",
    "MatchEvent",
    "MatchReason",
    "OpenTable",
    "Phase",
    "Play",
    "Refused",
    "Seating",
    "SetReady",
    "StartDeal",
    "Substitute",
    "TakeSeat",
    "WaitKind",
    "Waiting",
    "begin",
    "decide",
    "due",
    "evolve",
    "fold",
    "is_full",
    "is_over",
    "legal_moves",
    "redacted",
    "rematch",
    "seat_of",
    "waiting",
    "wants_commitment",
    "wants_deal",
]
