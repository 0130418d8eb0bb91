"""The matchmaking process, put together.

Law: plain constructor calls, in order of need, each with how it is stopped; no logic. At the stop watchers are sent to
another replica first, then the port closes, then the loops end; whatever they leave any other replica finds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import SystemRandom

from gouji.matchmaking.v1 import matchmaking_pb2_grpc as rpc
from prometheus_client import CollectorRegistry
from psycopg_pool import AsyncConnectionPool

from engine.runtime import identity, logs, parts, subjects
from engine.runtime.bus import Bus, FactMessage
from engine.runtime.clock import SystemClock
from engine.runtime.grpc_server import GrpcServer, IsReady
from engine.runtime.heads import Heads
from engine.runtime.identity import Role
from engine.runtime.intake import Intake, IntakeMeasures
from engine.runtime.lifecycle import Lifecycle, run
from engine.runtime.outbox_relay import OutboxRelay, OutgoingFact, RelayMeasures
from engine.runtime.uuid7 import uuid7
from services.matchmaking import seating, wire
from services.matchmaking.matching import SEATS, Match, Waiting
from services.matchmaking.measures import Measures
from services.matchmaking.office import Office
from services.matchmaking.policy import OPENING_SHARE
from services.matchmaking.rounds import Round, Rounds
from services.matchmaking.seating import Follower, Seating
from services.matchmaking.servicer import MatchmakingServicer
from services.matchmaking.settings import MatchmakingSettings
from services.matchmaking.store import Tickets
from services.matchmaking.sweeper import Keeper, Matcher
from services.matchmaking.watching import Watches

NAME = "matchmaking"
"""The service, its schema and its durable consumer."""
SERVICE = "gouji.matchmaking.v1.MatchmakingService"
MIGRATIONS = Path(__file__).parent / "migrations"
KEEPING_S = 5.0
"""How often abandoned tickets and matches are looked for, at least."""


@dataclass(frozen=True, slots=True)
class Matchmaking:
    """The parts of the running service that others look at."""

    office: Office
    watches: Watches
    intake: Intake[seating.SeatingFact]


async def start_matchmaking(
    life: Lifecycle, pool: AsyncConnectionPool, bus: Bus, settings: MatchmakingSettings, registry: CollectorRegistry
) -> Matchmaking:
    """Start the service on this schema and this bus, in whatever process it may be."""
    measures = Measures(registry)
    policy = settings.policy()
    tickets = Tickets(pool)
    watches = Watches(
        tickets,
        look_s=settings.matchmaking_look,
        beat_s=settings.matchmaking_beat,
        most=settings.matchmaking_watches,
    )
    relay = OutboxRelay(pool, bus, RelayMeasures(registry, NAME))

    def made(_: Round) -> None:
        relay.wake()
        watches.wake()

    def announce(match: Match) -> OutgoingFact:
        return wire.announce(match, settings.matchmaking_unopened * OPENING_SHARE)

    rounds = Rounds(pool, policy, draw_seats, uuid7, announce)
    matcher = Matcher(rounds, measures, made, sweep_s=settings.matchmaking_sweep)
    keeper = Keeper(
        tickets,
        Seating(pool),
        measures,
        watches.wake,
        silent_s=settings.matchmaking_silent,
        unopened_s=settings.matchmaking_unopened,
        kept_s=settings.matchmaking_kept,
        sweep_s=min(KEEPING_S, settings.matchmaking_unopened / 6),
    )
    intake = new_intake(pool, registry, measures)

    async def hear(message: FactMessage) -> None:
        await intake.take(message)
        watches.wake()

    life.spawn("outbox", relay.run())
    life.spawn("heads", Heads(pool, bus, subjects.FACTS, registry, NAME).run())
    life.spawn("matcher", matcher.run())
    life.spawn("keeper", keeper.run())
    life.spawn("watches", watches.run())
    facts = await bus.consume(subjects.FACTS, NAME, hear)
    life.on_stop("facts", facts.stop)
    return Matchmaking(Office(tickets, policy, matcher, watches, measures), watches, intake)


def new_intake(
    pool: AsyncConnectionPool, registry: CollectorRegistry, measures: Measures | None = None
) -> Intake[seating.SeatingFact]:
    """Make the intake of who sits where; operators use one of their own to look at parked facts and release them."""
    follower = Follower(wire.withdraw, (measures or Measures(registry)).matched)
    return Intake(pool, wire.seating_from_fact, follower.follow, IntakeMeasures(registry, NAME))


def add_to(server: GrpcServer, matchmaking: Matchmaking, is_ready: IsReady) -> None:
    """Serve players on this port."""
    servicer = MatchmakingServicer(matchmaking.office, lambda: identity.require(Role.PLAYER).subject)
    server.add(SERVICE, lambda at: rpc.add_MatchmakingServiceServicer_to_server(servicer, at), is_ready)


def draw_seats(six: Sequence[Waiting]) -> Sequence[Waiting]:
    """Draw the seats by the system's own randomness."""
    return SystemRandom().sample(six, SEATS)


async def compose(life: Lifecycle, settings: MatchmakingSettings) -> GrpcServer:
    """Start the process: its schema, its bus, the service, and the port where players reach it."""
    registry = parts.start_metrics(life, settings)
    pool = await parts.start_pool(life, settings, NAME, MIGRATIONS)
    bus = await parts.start_bus(life, settings, f"gouji-{NAME}", registry)
    matchmaking = await start_matchmaking(life, pool, bus, settings, registry)
    server = parts.new_server(settings, registry, SystemClock())
    add_to(server, matchmaking, parts.readiness(pool, bus))
    await parts.start_server(life, server)
    life.on_stop("watchers", matchmaking.watches.close)
    return server


def main() -> None:
    """Live until told to stop."""
    settings = MatchmakingSettings()  # type: ignore[call-arg]  # the environment gives what is missing
    logs.configure(settings.log_level, settings.log_format)

    async def start(life: Lifecycle) -> None:
        await compose(life, settings)

    sys.exit(run(start, grace=settings.grace))


if __name__ == "__main__":
    main()
