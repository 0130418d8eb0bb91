"""Which events are facts for other services, and how they are counted.

Law: pure. A fact's position within its table follows from the log alone, so that it is the same in every fold, whichever
event the fold begins at.
"""

from __future__ import annotations

from engine.match.events import DealStarted, Event, MatchFinished, TableClosed, TableOpened
from engine.rules.events import DealEnded, DealVoided

FactEvent = TableOpened | DealEnded | DealVoided | MatchFinished | TableClosed


def counted(before: int, event: Event) -> int:
    """How many facts a table has had with this event, when there were so many before it.

    A deal's start knows it by itself: the table was opened, and each deal before this one came to its end.
    """
    if isinstance(event, DealStarted):
        return event.deal
    return before + isinstance(event, FactEvent)
