"""What an operator can set for the table service, by `GOUJI_…` in the environment.

Law: names, bounds and defaults only. Times are in seconds.
"""

from __future__ import annotations

from pydantic import Field

from engine.runtime.limits import Rate
from engine.runtime.settings import BusSettings, GrpcSettings
from services.table.engine_client import Patience
from services.table.limits import Bounds


class TableSettings(BusSettings, GrpcSettings):
    """`table_patience`: how long a command waits for an engine at most, `table_attempt`: for one answer."""

    table_actions_rate: float = Field(default=10.0, gt=0)
    table_actions_burst: int = Field(default=30, ge=1)
    table_openings_hourly: float = Field(default=30.0, gt=0)
    table_openings_burst: int = Field(default=10, ge=1)
    table_streams: int = Field(default=16, ge=1)
    table_patience: float = Field(default=8.0, gt=0)
    table_attempt: float = Field(default=2.0, gt=0)

    def bounds(self) -> Bounds:
        """How much one player may ask."""
        return Bounds(
            actions=Rate(self.table_actions_rate, self.table_actions_burst),
            openings=Rate(self.table_openings_hourly / 3600, self.table_openings_burst),
            streams=self.table_streams,
        )

    def patience(self) -> Patience:
        """How long to wait for the engine."""
        return Patience(longest=self.table_patience, attempt=self.table_attempt)
