"""What a bus counts.

Law: metrics only. No label is a subject: there are as many subjects as tables.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class BusMeasures:
    """The counters of one connection."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.disconnects = Counter("gouji_bus_disconnects_total", "Times the link was lost.", registry=registry)
        self.errors = Counter("gouji_bus_errors_total", "What the driver complained of.", registry=registry)
        self.turned_away = Counter(
            "gouji_bus_turned_away_total", "Requests and live messages that found a full queue.", registry=registry
        )
        self.facts = Counter(
            "gouji_bus_facts_total",
            "Durable messages by what became of them.",
            ["durable", "result"],
            registry=registry,
        )
        self.interrupted = Gauge(
            "gouji_bus_consumer_interrupted", "1 while the server gives no facts to it.", ["durable"], registry=registry
        )
