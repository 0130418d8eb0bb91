"""Table service and engine in one process, put together; for an installation that one process can carry.

Law: plain constructor calls of both services' own parts; no logic. Requests and live messages stay in the process, facts
go over NATS, where matchmaking and ranking are. There must be one such process and no other engine or table service
beside it: shards that another process leads cannot be asked from here, and the health says so.
"""

from __future__ import annotations

import sys

from deploy.together.settings import TogetherSettings
from engine.runtime import logs, parts, subjects
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.bus_split import SplitBus
from engine.runtime.clock import SystemClock
from engine.runtime.grpc_server import GrpcServer
from engine.runtime.lifecycle import Lifecycle, run
from engine.service import main as engine_main
from engine.store.port import SHARDS
from services.table.main import start_table

OUTWARD = (subjects.WITNESSES, subjects.QUARANTINES)
"""What operators, who are elsewhere, hear and ask."""
LEADS = "gouji.together"
"""The name under which it is told whether this process leads every shard."""


async def compose(life: Lifecycle, settings: TogetherSettings) -> GrpcServer:
    """Start the process: the engine on its log, the table service before it, one port for players and health."""
    registry = parts.start_metrics(life, settings)
    store = await engine_main.open_store(life, settings)
    outside = await parts.start_bus(life, settings, "gouji-together", registry)
    bus = SplitBus(MemoryBus(Broker()), outside, OUTWARD)
    life.on_stop("inner bus", bus.close)
    engine = await engine_main.start_engine(life, store, bus, terms=settings.terms(), registry=registry)
    server = parts.new_server(settings, registry, SystemClock())
    engine_main.add_health(server, engine, store, bus)

    async def leads_all() -> bool:
        return len(engine.shards.held()) == SHARDS

    server.add(LEADS, lambda _: None, leads_all)
    watchers = start_table(life, bus, server, patience=settings.patience(), bounds=settings.bounds(), registry=registry)
    await parts.start_server(life, server)
    life.on_stop("streams", watchers.drain)
    return server


def main() -> None:
    """Live until told to stop."""
    settings = TogetherSettings()  # type: ignore[call-arg]  # the environment gives what is missing
    logs.configure(settings.log_level, settings.log_format)

    async def start(life: Lifecycle) -> None:
        await compose(life, settings)

    sys.exit(run(start, grace=settings.grace))


if __name__ == "__main__":
    main()
