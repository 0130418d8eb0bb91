"""What an operator can set for ranking, by `GOUJI_…` in the environment.

Law: names, bounds and defaults only.
"""

from __future__ import annotations

from pydantic import Field

from engine.runtime.settings import BusSettings, GrpcSettings, PostgresSettings


class RankingSettings(BusSettings, PostgresSettings, GrpcSettings):
    """`ranking_patience`: how many deliveries a fact gets that fails for an unknown reason before it is set aside."""

    ranking_patience: int = Field(default=5, ge=1)
