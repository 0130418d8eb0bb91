"""What may be queued for at all.

Law: pure; the rules of the game are not here, only the list of what this house offers.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.runtime.faults import MalformedRequest
from services.matchmaking.matching import Queue

OPENING_SHARE = 0.8
"""How much of the time that a match has to become a table is the engine's; the rest is its fact's to arrive."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The variants on offer, and how many deals a match may have; `default_deals` is meant by 0."""

    variant_keys: frozenset[str]
    default_deals: int = 4
    max_deals: int = 32

    def queue(self, variant_key: str, deals: int) -> Queue:
        """Name the queue that is asked for. Raises `MalformedRequest`."""
        queue = Queue(variant_key, deals or self.default_deals)
        if complaint := self.complaint(queue):
            raise MalformedRequest(complaint)
        return queue

    def complaint(self, queue: Queue) -> str:
        """Say what is wrong with a queue, which an older configuration may have let in; empty if nothing."""
        if queue.variant_key not in self.variant_keys:
            return "No such variant is played here."
        if not 1 <= queue.deals <= self.max_deals:
            return f"A match has 1 to {self.max_deals} deals."
        return ""
