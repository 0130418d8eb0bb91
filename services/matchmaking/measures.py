"""What matchmaking counts about itself.

Law: every metric of this service is named here, once, on the registry it is given. Labels are small closed sets.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from engine.runtime.uuid7 import made_at_ms
from services.matchmaking.matching import Match

_WAITS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


class Measures:
    """The metrics of one replica."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.created = Counter("gouji_matchmaking_tickets_total", "Tickets created.", registry=registry)
        self.ended = Counter(
            "gouji_matchmaking_ended_total", "Tickets by how this replica ended them.", ["state"], registry=registry
        )
        self.waited = Histogram(
            "gouji_matchmaking_wait_seconds",
            "Age of a ticket when it is proposed for a table.",
            buckets=_WAITS,
            registry=registry,
        )
        self.proposed = Counter(
            "gouji_matchmaking_proposed_total", "Matches that the engine was asked to open.", registry=registry
        )
        self.poisoned = Counter(
            "gouji_matchmaking_poisoned_total",
            "Tickets set aside because they can never be matched.",
            registry=registry,
        )
        self.troubles = Counter("gouji_matchmaking_troubles_total", "Rounds that failed.", registry=registry)
        self.unopened = Counter(
            "gouji_matchmaking_unopened_total", "Matches whose table did not open in time.", registry=registry
        )
        self.watches = Gauge("gouji_matchmaking_watches", "Open watches of this replica.", registry=registry)

    def propose(self, match: Match) -> None:
        """Count a match that this replica made; its table's id tells when."""
        self.proposed.inc()
        for ticket in match.tickets:
            self.waited.observe((made_at_ms(match.table_id) - ticket.created_at_ms) / 1000)

    def matched(self, tickets: int) -> None:
        """Count tickets that found their table, as this replica heard."""
        self.ended.labels("matched").inc(tickets)
