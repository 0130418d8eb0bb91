"""What the engine counts about itself.

Law: every metric of the engine is named here, once, on the registry it is given. Labels are small closed sets; never a
table, a player or a card.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Measures:
    """The metrics of one engine replica."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.commands = Counter(
            "gouji_engine_commands_total", "Commands by how they ended.", ["result"], registry=registry
        )
        self.refusals = Counter(
            "gouji_engine_refusals_total", "Commands that the rules refused, by reason.", ["reason"], registry=registry
        )
        self.append_seconds = Histogram(
            "gouji_engine_append_seconds", "How long an append took.", buckets=_SECONDS, registry=registry
        )
        self.folds = Counter("gouji_engine_folds_total", "Tables folded from the log.", registry=registry)
        self.doubts = Counter(
            "gouji_engine_doubts_total", "Times a table was dropped from memory and folded again.", registry=registry
        )
        self.live_tables = Gauge("gouji_engine_live_tables", "Tables held in memory.", registry=registry)
        self.quarantined = Gauge("gouji_engine_quarantined_tables", "Tables set aside by a fault.", registry=registry)
        self.leases = Gauge("gouji_engine_leases_held", "Shards that this replica leads.", registry=registry)
        self.deadlines = Counter(
            "gouji_engine_deadlines_total", "Deadlines by what became of them.", ["result"], registry=registry
        )
        self.unshown = Counter(
            "gouji_engine_unshown_updates_total", "Live updates that the bus did not take.", registry=registry
        )
        self.outbox_pending = Gauge("gouji_engine_outbox_pending", "Facts waiting to be published.", registry=registry)
        self.outbox_oldest = Gauge(
            "gouji_engine_outbox_oldest_seconds", "How long the oldest fact has been waiting.", registry=registry
        )
        self.outbox_parked = Gauge(
            "gouji_engine_outbox_parked_tables", "Tables whose facts contradict the bus.", registry=registry
        )
        self.outbox_holes = Gauge(
            "gouji_engine_bus_holes", "Tables of which the bus has lost facts.", registry=registry
        )
        self.outbox_forks = Gauge(
            "gouji_engine_bus_forks", "Tables parked because the bus has other facts than the log.", registry=registry
        )
        self.partition_days_ahead = Gauge(
            "gouji_engine_partition_days_ahead", "Days after today that have room in the log.", registry=registry
        )
