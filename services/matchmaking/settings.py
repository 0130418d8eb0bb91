"""What an operator can set for matchmaking, by `GOUJI_…` in the environment.

Law: names, bounds and defaults only. Times are in seconds.
"""

from __future__ import annotations

from pydantic import Field

from engine.runtime.settings import BusSettings, GrpcSettings, PostgresSettings
from services.matchmaking.policy import Policy


class MatchmakingSettings(BusSettings, PostgresSettings, GrpcSettings):
    """How matchmaking is run.

    `matchmaking_variants` are the keys on offer, comma-separated. `matchmaking_silent`: how long a ticket lives without
    a watch; `matchmaking_unopened`: how long a match may take to become a table before its players wait again;
    `matchmaking_kept`: how long an ended ticket can be looked up.
    """

    matchmaking_variants: str = "qingdao-charter,qingdao-letter,qingdao-full,shandong,barracks,jinan"
    matchmaking_default_deals: int = Field(default=4, ge=1)
    matchmaking_max_deals: int = Field(default=32, ge=1)
    matchmaking_sweep: float = Field(default=0.5, gt=0)
    matchmaking_look: float = Field(default=0.5, gt=0)
    matchmaking_beat: float = Field(default=5.0, gt=0)
    matchmaking_silent: float = Field(default=60.0, gt=0)
    matchmaking_unopened: float = Field(default=30.0, gt=0)
    matchmaking_kept: float = Field(default=86_400.0, gt=0)
    matchmaking_watches: int = Field(default=10_000, ge=1)

    def policy(self) -> Policy:
        """What may be queued for."""
        keys = frozenset(key.strip() for key in self.matchmaking_variants.split(","))
        return Policy(keys, self.matchmaking_default_deals, self.matchmaking_max_deals)
