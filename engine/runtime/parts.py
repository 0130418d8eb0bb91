"""The parts that every service process has, made from its settings, started, and told to the lifecycle how to stop.

Law: called from `main.py` alone; knows no service. A part that cannot start raises, and the process ends.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from prometheus_client import CollectorRegistry
from psycopg_pool import AsyncConnectionPool

from engine.runtime import interceptors, migrations, postgres
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.clock import Clock
from engine.runtime.grpc_server import GrpcServer, IsReady, ServerOptions, Tls
from engine.runtime.identity import Verifier
from engine.runtime.interceptors import Bounds, Door
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.limits import Rate
from engine.runtime.postgres import reaching
from engine.runtime.settings import (
    BusSettings,
    GrpcSettings,
    ListenSettings,
    PostgresSettings,
    ProcessSettings,
    pem_blocks,
)
from engine.runtime.telemetry import MetricsPort, new_registry

_LONGEST_TRANSACTION_S = 15.0


class Unmigrated(Exception):
    """The database lacks migrations: run them before starting."""


class Volatile(Exception):
    """The database would forget what it has acknowledged: the message names the settings that are off."""


def start_metrics(life: Lifecycle, settings: ProcessSettings) -> CollectorRegistry:
    """Open the port where Prometheus reads. Raises `OSError` when it is taken."""
    registry = new_registry()
    life.on_stop("metrics", MetricsPort.open(registry, settings.metrics_host, settings.metrics_port).stop)
    return registry


async def start_pool(life: Lifecycle, settings: PostgresSettings, schema: str, scripts: Path) -> AsyncConnectionPool:
    """Connect to a schema. Raises `Unmigrated`, `Unavailable`, and in production `Volatile`."""
    dsn = settings.postgres_dsn.get_secret_value()
    if missing := await asyncio.to_thread(migrations.pending, dsn, scripts, schema):
        raise Unmigrated(f"{schema}: {', '.join(missing)}")
    pool = postgres.pool(dsn, schema, size=settings.postgres_pool_max, transaction_s=_LONGEST_TRANSACTION_S)
    with reaching():
        await pool.open(wait=True)
        life.on_stop("pool", pool.close)
        if settings.is_production and (off := await postgres.forgetful(pool)):
            raise Volatile(", ".join(off))
    return pool


async def start_bus(life: Lifecycle, settings: BusSettings, name: str, registry: CollectorRegistry) -> NatsBus:
    """Connect to NATS and lay out the streams. Raises `BusUnavailable`."""
    bus = await NatsBus.connect(reaching_nats(settings, name), registry)
    life.on_stop("bus", bus.close)
    life.spawn("bus guard", bus.guard())
    return bus


def reaching_nats(settings: BusSettings, name: str) -> NatsOptions:
    """Tell a bus how to connect, and by which name."""
    password = settings.nats_password
    return NatsOptions(
        servers=tuple(settings.nats_servers.split(",")),
        name=name,
        user=settings.nats_user,
        password=password.get_secret_value() if password else None,
        tls=settings.nats_tls(),
        replicas=settings.nats_replicas,
    )


def new_server(settings: GrpcSettings, registry: CollectorRegistry, clock: Clock) -> GrpcServer:
    """Make a server that lets in whom the settings say; services are added to it before it is started."""
    verifier = Verifier(pem_blocks(settings.token_public_keys), settings.token_audience, clock)
    bounds = Bounds(
        calls=settings.grpc_max_calls,
        player=Rate(settings.player_rate, settings.player_burst),
        address=Rate(settings.address_rate, settings.address_burst),
        proxies=settings.proxies(),
    )
    door = Door(verifier, bounds, interceptors.Measures(registry), clock)
    return GrpcServer(listening(settings), [door])


def listening(settings: ListenSettings) -> ServerOptions:
    """Tell a server where to listen."""
    return ServerOptions(settings.grpc_host, settings.grpc_port, _tls(settings))


async def start_server(life: Lifecycle, server: GrpcServer) -> None:
    """Listen; at the stop calls under way get half of the time that is left for it by then. Raises `OSError`."""
    await server.start()
    life.on_stop("server", lambda: server.stop(life.may_take_s / 2))


def readiness(pool: AsyncConnectionPool, bus: NatsBus) -> IsReady:
    """Make the check of a service that needs its database and the bus."""

    async def is_ready() -> bool:
        async with pool.connection() as connection:
            await connection.execute("select 1")
        return bus.is_connected

    return is_ready


def _tls(settings: ListenSettings) -> Tls | None:
    if settings.grpc_certificate is None or settings.grpc_key is None:
        return None
    return Tls(settings.grpc_certificate, settings.grpc_key, settings.grpc_client_ca)
