"""The table service over real gRPC on a free port, with the house's own door, on any bus.

Law: composes what `services.table.main` composes; the limits are wide unless a test narrows them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
from prometheus_client import CollectorRegistry

from engine.runtime.bus import Bus
from engine.runtime.clock import SystemClock
from engine.runtime.grpc_client import bearing
from engine.runtime.grpc_server import GrpcServer, ServerOptions
from engine.runtime.identity import Minter, Role, Verifier, new_keys
from engine.runtime.interceptors import Bounds as DoorBounds
from engine.runtime.interceptors import Door
from engine.runtime.interceptors import Measures as DoorMeasures
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.limits import Rate
from services.table.engine_client import Patience
from services.table.limits import Bounds
from services.table.main import start_table
from services.table.watchers import Watchers

PRIVATE, PUBLIC = new_keys()
HOUR_MS = 3_600_000
WIDE = Rate(per_second=1e6, burst=1e6)
PLENTY = Bounds(actions=WIDE, openings=WIDE, streams=100)
HASTY = Patience(longest=1.0, attempt=0.5, first_pause=0.005, longest_pause=0.02)


def token(subject: str, role: Role = Role.PLAYER) -> str:
    """A token that every server of this module believes."""
    return Minter(PRIVATE, "gouji", SystemClock()).mint(subject, role, HOUR_MS)


@dataclass
class TableServer:
    """A running replica."""

    server: GrpcServer
    watchers: Watchers
    registry: CollectorRegistry

    @property
    def target(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.server.port}"

    def internal_errors(self) -> int:
        """How many calls ended for no reason that a caller is told."""
        metrics = (sample for family in self.registry.collect() for sample in family.samples)
        return sum(
            int(sample.value)
            for sample in metrics
            if sample.name == "gouji_grpc_calls_total" and sample.labels["code"] in {"INTERNAL", "UNKNOWN"}
        )

    @asynccontextmanager
    async def channel(self, subject: str | None, port: int | None = None) -> AsyncIterator[grpc.aio.Channel]:
        """A player's channel; None for somebody without a token."""
        bearer = None if subject is None else token(subject)
        # Without gRPC's own retries, so that a test sees every answer.
        channel = grpc.aio.insecure_channel(
            f"127.0.0.1:{port or self.server.port}",
            options=[("grpc.enable_retries", 0)],
            interceptors=bearing(lambda: bearer) if bearer else (),
        )
        try:
            yield channel
        finally:
            await channel.close()


@asynccontextmanager
async def table_server(
    bus: Bus, *, bounds: Bounds = PLENTY, patience: Patience = HASTY, options: ServerOptions | None = None
) -> AsyncIterator[TableServer]:
    """Serve for a while."""
    life, registry = Lifecycle(), CollectorRegistry()
    verifier = Verifier([PUBLIC], "gouji", SystemClock())
    door = Door(verifier, DoorBounds(player=WIDE, address=WIDE), DoorMeasures(registry), SystemClock())
    server = GrpcServer(options or ServerOptions(), [door])
    watchers = start_table(life, bus, server, patience=patience, bounds=bounds, registry=registry)
    await server.start()
    life.on_stop("server", lambda: server.stop(0.1))
    try:
        yield TableServer(server, watchers, registry)
    finally:
        await life._stop_all()
