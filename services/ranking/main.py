"""The ranking process, put together.

Law: plain constructor calls, in order of need, each with how it is stopped; no logic.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from gouji.ranking.v1 import ranking_pb2_grpc as rpc
from prometheus_client import CollectorRegistry
from psycopg_pool import AsyncConnectionPool

from engine.runtime import logs, parts, postgres, subjects
from engine.runtime.bus import Bus, FactMessage
from engine.runtime.clock import SystemClock
from engine.runtime.grpc_server import GrpcServer, IsReady
from engine.runtime.heads import Heads
from engine.runtime.intake import Intake, IntakeMeasures
from engine.runtime.lifecycle import Lifecycle, run
from engine.runtime.outbox_relay import OutboxRelay, RelayMeasures
from services.ranking import rebuild, wire
from services.ranking.board import Board
from services.ranking.journal import Entry, Journal
from services.ranking.servicer import RankingServicer
from services.ranking.settings import RankingSettings

NAME = "ranking"
"""The service and its schema."""
SERVICE = "gouji.ranking.v1.RankingService"
MIGRATIONS = Path(__file__).parent / "migrations"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The parts of the running service that others look at."""

    board: Board
    intake: Intake[Entry]


async def start_ranking(
    life: Lifecycle, pool: AsyncConnectionPool, bus: Bus, settings: RankingSettings, registry: CollectorRegistry
) -> Ranking:
    """Start the service on this schema and this bus, in whatever process it may be."""
    relay = OutboxRelay(pool, bus, RelayMeasures(registry, NAME))
    intake = new_intake(pool, registry, settings.ranking_patience)

    async def take(fact: FactMessage) -> None:
        await intake.take(fact)
        relay.wake()

    life.spawn("outbox", relay.run())
    life.spawn("heads", Heads(pool, bus, subjects.FACTS, registry, NAME).run())
    facts = await bus.consume(subjects.FACTS, await rebuild.consumer_name(pool), take)
    life.on_stop("facts", facts.stop)
    return Ranking(Board(pool), intake)


def new_intake(pool: AsyncConnectionPool, registry: CollectorRegistry, patience: int = 1) -> Intake[Entry]:
    """Make the intake of results; operators use one of their own to look at parked facts and release them."""
    effect = Journal(wire.announce).enter
    return Intake(pool, wire.entry_from_fact, effect, IntakeMeasures(registry, NAME), patience=patience)


def add_to(server: GrpcServer, ranking: Ranking, is_ready: IsReady) -> None:
    """Serve readers on this port."""
    servicer = RankingServicer(ranking.board)
    server.add(SERVICE, lambda at: rpc.add_RankingServiceServicer_to_server(servicer, at), is_ready)


async def compose(life: Lifecycle, settings: RankingSettings) -> GrpcServer:
    """Start the process: its schema, its bus, the service, and the port where it is read."""
    registry = parts.start_metrics(life, settings)
    pool = await parts.start_pool(life, settings, NAME, MIGRATIONS)
    bus = await parts.start_bus(life, settings, f"gouji-{NAME}", registry)
    ranking = await start_ranking(life, pool, bus, settings, registry)
    server = parts.new_server(settings, registry, SystemClock())
    add_to(server, ranking, parts.readiness(pool, bus))
    await parts.start_server(life, server)
    return server


async def rebuild_ratings(dsn: str) -> rebuild.Rebuilt:
    """Fold the journal of this database anew and mend the ratings, also while the service runs."""
    async with postgres.pool(dsn, NAME, size=1) as pool:
        return await rebuild.rebuild(pool, wire.entry_from_fact)


async def start_over(dsn: str) -> None:
    """Forget all ratings, while the service is down; it counts the stream anew when it starts. For the schema's owner."""
    async with postgres.pool(dsn, NAME, size=1) as pool:
        await rebuild.start_over(pool)


def main() -> None:
    """Live until told to stop."""
    settings = RankingSettings()  # type: ignore[call-arg]  # the environment gives what is missing
    logs.configure(settings.log_level, settings.log_format)

    async def start(life: Lifecycle) -> None:
        await compose(life, settings)

    sys.exit(run(start, grace=settings.grace))


if __name__ == "__main__":
    main()
