"""The engine process with a clock that can be turned from outside.

Law: composed of the house's own parts; only the clock differs. It reads by how many milliseconds it is off from
the file that `GOUJI_CHAOS_CLOCK` names, a moment after it has changed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from engine.runtime import logs, parts
from engine.runtime.clock import SystemClock
from engine.runtime.grpc_server import GrpcServer
from engine.runtime.lifecycle import Lifecycle, run
from engine.service.main import add_health, open_store, start_engine
from engine.service.settings import EngineSettings

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


async def compose(life: Lifecycle, settings: EngineSettings) -> None:
    """Start an engine with a turned clock."""
    registry = parts.start_metrics(life, settings)
    store = await open_store(life, settings)
    bus = await parts.start_bus(life, settings, "gouji-engine", registry)
    clock = TurnedClock(Path(os.environ["GOUJI_CHAOS_CLOCK"]))
    terms = settings.terms()
    engine = await start_engine(life, store, bus, terms=terms, registry=registry, clock=clock)
    server = GrpcServer(parts.listening(settings), ())
    add_health(server, engine, store, bus)
    await parts.start_server(life, server)


def main() -> None:
    """Live until told to stop, or killed."""
    settings = EngineSettings()  # type: ignore[call-arg]  # the environment gives what is missing
    logs.configure(settings.log_level, settings.log_format)
    sys.exit(run(lambda life: compose(life, settings), grace=settings.grace))


if __name__ == "__main__":
    main()
