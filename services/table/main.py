"""The table service, put together.

Law: plain constructor calls, in order of need, each with how it is stopped; no logic. Stopping goes the other way: first
the streams are sent elsewhere, then calls finish, then the bus is let go.
"""

from __future__ import annotations

import sys

from gouji.engine.v1 import engine_pb2
from prometheus_client import CollectorRegistry

from engine.runtime import identity, logs
from engine.runtime.bus import Bus
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.clock import SystemClock
from engine.runtime.faults import Fault
from engine.runtime.grpc_server import GrpcServer, ServerOptions, Tls
from engine.runtime.identity import Verifier
from engine.runtime.interceptors import Bounds as DoorBounds
from engine.runtime.interceptors import Door
from engine.runtime.interceptors import Measures as DoorMeasures
from engine.runtime.lifecycle import Lifecycle, run
from engine.runtime.limits import Rate
from engine.runtime.settings import GrpcSettings, pem_blocks
from engine.runtime.telemetry import MetricsPort, new_registry
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


async def compose(life: Lifecycle, settings: TableSettings) -> None:
    """Start the process: its metrics, its bus, its server."""
    registry = new_registry()
    metrics = MetricsPort.open(registry, settings.metrics_host, settings.metrics_port)
    life.on_stop("metrics", metrics.stop)
    bus = await NatsBus.connect(_nats(settings))
    life.on_stop("bus", bus.close)
    life.spawn("bus", bus.guard())
    server = GrpcServer(_listening(settings), [_door(settings, registry)])
    watchers = start_table(life, bus, server, patience=settings.patience(), bounds=settings.bounds(), registry=registry)
    await server.start()
    life.on_stop("server", lambda: server.stop(settings.grace / 2))
    life.on_stop("streams", watchers.drain)


def _listening(settings: GrpcSettings) -> ServerOptions:
    tls = None
    if settings.grpc_certificate and settings.grpc_key:
        tls = Tls(settings.grpc_certificate, settings.grpc_key, settings.grpc_client_ca)
    return ServerOptions(settings.grpc_host, settings.grpc_port, tls)


def _door(settings: GrpcSettings, registry: CollectorRegistry) -> Door:
    clock = SystemClock()
    bounds = DoorBounds(
        calls=settings.grpc_max_calls,
        player=Rate(settings.player_rate, settings.player_burst),
        address=Rate(settings.address_rate, settings.address_burst),
    )
    verifier = Verifier(pem_blocks(settings.token_public_keys), settings.token_audience, clock)
    return Door(verifier, bounds, DoorMeasures(registry), clock)


def _nats(settings: TableSettings) -> NatsOptions:
    password = settings.nats_password
    return NatsOptions(
        servers=tuple(settings.nats_servers.split(",")),
        name="gouji-table",
        user=settings.nats_user,
        password=password.get_secret_value() if password else None,
        tls=settings.nats_tls(),
        replicas=settings.nats_replicas,
    )


def main() -> None:
    """Live until told to stop."""
    settings = TableSettings()  # type: ignore[call-arg]  # the environment gives what is missing
    logs.configure(settings.log_level, settings.log_format)
    sys.exit(run(lambda life: compose(life, settings), grace=settings.grace))


if __name__ == "__main__":
    main()
