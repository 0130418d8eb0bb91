"""The table service, put together.

Law: plain constructor calls, in order of need, each with how it is stopped; no logic. Stopping goes the other way: first
the streams are sent elsewhere, then calls finish, then the bus is let go.
"""

from __future__ import annotations

import sys

from gouji.engine.v1 import engine_pb2
from prometheus_client import CollectorRegistry

from engine.runtime import identity, logs, parts
from engine.runtime.bus import Bus
from engine.runtime.clock import SystemClock
from engine.runtime.faults import Fault
from engine.runtime.grpc_server import GrpcServer
from engine.runtime.lifecycle import Lifecycle, run
from services.table.engine_client import EngineClient, Patience
from services.table.history import Asker
from services.table.limits import Bounds, Limits
from services.table.measures import Measures
from services.table.servicer import SERVICE, Commands, TableServicer, register
from services.table.settings import TableSettings
from services.table.watchers import Watchers

READY_S = 1.0
"""How long the engine may take to show that it is there."""


def start_table(
    life: Lifecycle, bus: Bus, server: GrpcServer, *, patience: Patience, bounds: Bounds, registry: CollectorRegistry
) -> Watchers:
    """Add the table service to a server, in whatever process it may be."""
    measures = Measures(registry)
    engine = EngineClient(bus, patience)
    watchers = Watchers(bus, engine, measures)
    measures.streams.set_function(lambda: len(watchers.streams))
    measures.tables.set_function(lambda: watchers.tables)
    limits = Limits(bounds)
    commands = Commands(engine, watchers, limits)
    servicer = TableServicer(commands, engine, watchers, limits, who)

    async def is_ready() -> bool:
        return not watchers.is_draining and await is_answering(engine)

    server.add(SERVICE, lambda listening: register(listening, servicer), is_ready)
    life.spawn("watchers", watchers.run())
    return watchers


async def is_answering(engine: EngineClient) -> bool:
    """Whether an engine is there to be asked."""
    try:
        await engine.tables(engine_pb2.ListRequest(limit=1), READY_S)
    except Fault:
        return False
    return True


def who() -> Asker:
    """The caller, as the door has authenticated him."""
    caller = identity.current()
    return Asker(caller.subject, caller.role.value)


async def compose(life: Lifecycle, settings: TableSettings) -> GrpcServer:
    """Start the process: its metrics, its bus, its server."""
    registry = parts.start_metrics(life, settings)
    bus = await parts.start_bus(life, settings, "gouji-table", registry)
    server = parts.new_server(settings, registry, SystemClock())
    watchers = start_table(life, bus, server, patience=settings.patience(), bounds=settings.bounds(), registry=registry)
    await parts.start_server(life, server)
    life.on_stop("streams", watchers.drain)
    return server


def main() -> None:
    """Live until told to stop."""
    settings = TableSettings()  # type: ignore[call-arg]  # the environment gives what is missing
    logs.configure(settings.log_level, settings.log_format)

    async def start(life: Lifecycle) -> None:
        await compose(life, settings)

    sys.exit(run(start, grace=settings.grace))


if __name__ == "__main__":
    main()
