"""What a viewer is shown of a table's events: the one place of the match where something is hidden.

Law: by allow-list. A field that is hidden until the deal is over is `None` in every form that leaves the engine; the
events of a deal are redacted by `rules.redacted`.
"""

from __future__ import annotations

from dataclasses import replace

from engine import rules
from engine.match.events import DealStarted, Event, MatchEvent, ReadyChanged, SeedCommitted


def redacted(event: Event, viewer: int | None) -> Event | None:
    """The form of this event for a seat, or for the public (`None`); `None` where only that it happened may be known."""
    if not isinstance(event, MatchEvent):
        return rules.redacted(event, viewer)
    match event:
        case DealStarted():
            return replace(event, seed=None, contributions=None, deck=None)
        case SeedCommitted():
            return replace(event, seed=None)
        case ReadyChanged(seat=seat) if seat != viewer:
            return replace(event, contribution=None)
        case _:
            return event
