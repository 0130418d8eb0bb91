"""The engine process with a clock that can be turned from outside.

Law: composed of the house's own parts; only the clock differs. It reads by how many milliseconds it is off from the file
that `GOUJI_CHAOS_CLOCK` names, whenever it has been some moments since.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from engine.runtime import logs, parts
from engine.runtime.clock import SystemClock
from engine.runtime.grpc_server import GrpcServer, ServerOptions
from engine.runtime.lifecycle import Lifecycle, run
from engine.service.canary_client import Canary
from engine.service.main import start_engine
from engine.service.settings import EngineSettings
from engine.store.port import EventStore
from engine.store.postgres import PostgresEventStore

LOOK_S = 0.05


class TurnedClock(SystemClock):
    """A wall clock that is off by what a file says; nothing when there is none. Its monotonic time is true."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._off_ms = 0
        self._looked_at = 0.0

    def now_ms(self) -> int:
        """Unix time in milliseconds, as this clock has it."""
        now = time.monotonic()
        if now - self._looked_at > LOOK_S:
            self._looked_at = now
            self._off_ms = int(self._path.read_text()) if self._path.exists() else 0
        return super().now_ms() + self._off_ms


async def compose(life: Lifecycle, settings: EngineSettings, store: EventStore) -> None:
    """Start an engine with a turned clock on this store."""
    registry = parts.start_metrics(life, settings)
    life.on_stop("store", store.close)
    bus = await parts.start_bus(life, settings, "gouji-engine", registry)
    clock = TurnedClock(Path(os.environ["GOUJI_CHAOS_CLOCK"]))
    engine = await start_engine(life, store, bus, terms=settings.terms(), registry=registry, clock=clock)
    server = GrpcServer(ServerOptions(settings.grpc_host, settings.grpc_port), ())
    server.add("gouji.engine.v1.Engine", lambda _: None, Canary(bus, engine.shards).sings)
    await server.start()
    life.on_stop("health", lambda: server.stop(grace=1.0))


def main() -> None:
    """Live until told to stop."""
    settings = EngineSettings()  # type: ignore[call-arg]  # the environment gives what is missing
    logs.configure(settings.log_level, settings.log_format)

    async def start(life: Lifecycle) -> None:
        await compose(life, settings, await PostgresEventStore.open(settings.postgres_dsn.get_secret_value()))

    sys.exit(run(start, grace=settings.grace))


if __name__ == "__main__":
    main()
