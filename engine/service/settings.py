"""What an operator may set on the engine.

Law: values, their bounds and defaults; read once, in `main.py`. Times end in `_ms`.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import Self
from uuid import uuid4

from pydantic import Field, model_validator

from engine.runtime.settings import BusSettings, ListenSettings, PostgresSettings
from engine.service.shards import LeaseTerms
from engine.service.waits import Spans


@dataclass(frozen=True, slots=True)
class EngineTerms:
    """What one replica works by. `owner` names it among the others, anew with each start; a `witness` tells operators
    the fingerprint of every state.
    """  # noqa: D205 - one sentence for each

    owner: str = field(default_factory=lambda: f"{socket.gethostname()}-{uuid4().hex[:8]}")
    leases: LeaseTerms = field(default_factory=LeaseTerms)
    spans: Spans = field(default_factory=Spans)
    mailbox: int = 64
    live_tables: int = 10_000
    sweep_ms: int = 1_000
    witness: bool = False


class EngineSettings(BusSettings, PostgresSettings, ListenSettings):
    """The engine process. A lease must outlive two renewals, so that one lost renewal loses no shard.

    The engine keeps its log in Postgres alone; a store that forgets is for tests and demonstrations in one process.
    """

    turn_ms: int = Field(default=20_000, ge=100)
    window_ms: int = Field(default=5_000, ge=100)
    between_ms: int = Field(default=30_000, ge=100)
    gathering_ms: int = Field(default=1_800_000, ge=1_000)
    late_ms: int = Field(default=3_000, ge=100)
    lease_ttl_ms: int = Field(default=6_000, ge=500)
    lease_renew_ms: int = Field(default=2_000, ge=100)
    shards_at_most: int = Field(default=256, ge=1, le=256)
    mailbox: int = Field(default=64, ge=1)
    live_tables: int = Field(default=10_000, ge=1)
    sweep_ms: int = Field(default=1_000, ge=10)
    witness: bool = False

    @model_validator(mode="after")
    def _is_safe(self) -> Self:
        if self.lease_renew_ms * 2 > self.lease_ttl_ms:
            raise ValueError("a lease must last at least two renewals")
        return self

    def terms(self) -> EngineTerms:
        """These settings as the engine's parts take them."""
        return EngineTerms(
            leases=LeaseTerms(self.lease_ttl_ms, self.lease_renew_ms, self.shards_at_most),
            spans=Spans(self.turn_ms, self.window_ms, self.between_ms, self.gathering_ms, self.late_ms),
            mailbox=self.mailbox,
            live_tables=self.live_tables,
            sweep_ms=self.sweep_ms,
            witness=self.witness,
        )
