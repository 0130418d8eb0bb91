"""What the table service counts for its operators.

Law: names and meanings of metrics; no logic.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class Measures:
    """The metrics of one replica."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.streams = Gauge("gouji_table_streams", "Play and Watch streams held.", registry=registry)
        self.tables = Gauge("gouji_table_rooms", "Tables with streams on this replica.", registry=registry)
        self.ended = Counter(
            "gouji_table_streams_ended_total", "Streams ended by the house, by reason.", ["reason"], registry=registry
        )
