"""A decision while it is being taken: the events so far and the deal after them.

Law: the only mutable thing in the core, local to one `decide`. Consequences read `draft.deal` and `tell` facts; what was
told is never taken back.
"""

from __future__ import annotations

from engine.rules.events import DealEvent
from engine.rules.evolve import evolve
from engine.rules.state import Deal


class Draft:
    """Collects the events of one decision."""

    __slots__ = ("deal", "events")

    def __init__(self, deal: Deal) -> None:
        self.deal = deal
        self.events: list[DealEvent] = []

    def tell(self, event: DealEvent) -> None:
        """Add a fact; the deal is the one after it from now on."""
        self.deal = evolve(self.deal, event)
        self.events.append(event)
