"""The engine process, put together.

Law: plain constructor calls, in order of need, each with how it is stopped; no rule, no logic. Stopping goes the other
way: first the doors close, then what is under way ends, then the shards are handed over.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry

from engine.runtime import logs, parts, subjects
from engine.runtime.bus import Bus, RequestHandler
from engine.runtime.clock import Clock, SystemClock
from engine.runtime.grpc_server import GrpcServer
from engine.runtime.lifecycle import Lifecycle, run
from engine.service import handover
from engine.service.canary_client import Canary
from engine.service.deadlines import Deadlines
from engine.service.dealer import Dealer
from engine.service.doors import IN_FLIGHT, Doors
from engine.service.earshot import Earshot
from engine.service.envelopes import wire as envelopes
from engine.service.history import History
from engine.service.ledger import Ledger
from engine.service.listing import Listing
from engine.service.matches_client import DURABLE, Matches
from engine.service.measures import Measures
from engine.service.outbox import Outbox
from engine.service.rematches_client import Rematches
from engine.service.room import Room
from engine.service.servicer import Servicer
from engine.service.settings import EngineSettings, EngineTerms
from engine.service.shards import Shards
from engine.service.showing import Showing
from engine.service.table import House, Show
from engine.service.tables import Tables
from engine.service.witness import Witness
from engine.store.port import EventStore
from engine.store.postgres import PostgresEventStore

SERVICE = "gouji.engine.v1.Engine"
"""The name under which the engine's health is told; nothing else is served there."""
LOG = "gouji.engine.v1.Log"
"""The name under which it is told whether the log has room."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts of a running engine that others look at."""

    shards: Shards
    tables: Tables
    deadlines: Deadlines
    outbox: Outbox
    measures: Measures


async def start_engine(
    life: Lifecycle,
    store: EventStore,
    bus: Bus,
    *,
    terms: EngineTerms,
    registry: CollectorRegistry,
    clock: Clock | None = None,
    dealer: Dealer | None = None,
) -> Engine:
    """Start an engine on this store and this bus, in whatever process it may be."""
    clock, dealer = clock or SystemClock(), dealer or Dealer()
    measures = Measures(registry)
    shards = Shards(store, clock, terms.owner, terms.leases, partial(handover.tell, bus))
    earshot = Earshot(bus, shards.trouble)
    shards.lead_only_while(earshot.is_heard)
    deadlines = Deadlines(store, clock, shards, terms.sweep_ms, earshot.confirmed)
    outbox = Outbox(store, bus, clock, shards, measures=measures, sweep_ms=terms.sweep_ms)
    show: Show = Showing(bus, measures).show
    house = House(
        store=store,
        ledger=Ledger(store, measures),
        clock=clock,
        dealer=dealer,
        spans=terms.spans,
        measures=measures,
        show=Witness(bus, measures, show) if terms.witness else show,
        arm=deadlines.arm,
        nudge_outbox=outbox.nudge,
        facts_of=envelopes.facts,
        mailbox=terms.mailbox,
    )
    tables = Tables(house, shards, terms.live_tables)
    rematches = Rematches(store, bus, clock)
    servicer = Servicer(store, tables, History(store, tables), Listing(store), rematches=rematches, dealer=dealer)
    behind: Mapping[Callable[[int], str], RequestHandler] = {
        subjects.command: servicer.command,
        subjects.history: servicer.history,
        subjects.export: servicer.export,
        subjects.quarantine: servicer.quarantine,
        subjects.moves: servicer.moves,
    }
    doors = Doors(bus, behind)
    shards.follow((tables, deadlines, doors))
    engine = Engine(shards, tables, deadlines, outbox, measures)
    _count(engine)
    await _listen(life, earshot)
    await _run(life, engine, doors, servicer, bus)
    matches = await bus.consume(subjects.MATCHES, DURABLE, Matches(bus, clock).take)
    life.on_stop("matches", matches.stop)
    return engine


async def compose(life: Lifecycle, settings: EngineSettings) -> GrpcServer:
    """Start the process: its store, its bus, the engine, and the ports where it is watched."""
    registry = parts.start_metrics(life, settings)
    store = await open_store(life, settings)
    bus = await parts.start_bus(life, settings, "gouji-engine", registry)
    engine = await start_engine(life, store, bus, terms=settings.terms(), registry=registry)
    server = GrpcServer(parts.listening(settings), ())
    add_health(server, engine, store, bus)
    await parts.start_server(life, server)
    return server


async def open_store(life: Lifecycle, settings: EngineSettings) -> PostgresEventStore:
    """Open the log. Raises `StoreUnavailable`, `UnmigratedStore`, and in production `VolatileStore`."""
    store = await PostgresEventStore.open(settings.postgres_dsn.get_secret_value(), must_last=settings.is_production)
    life.on_stop("store", store.close)
    return store


def add_health(server: GrpcServer, engine: Engine, store: PostgresEventStore, bus: Bus) -> None:
    """Tell on this server whether the engine can act, and whether its log has room."""
    server.add(SERVICE, lambda _: None, Canary(bus, engine.shards).sings)
    room = Room(store.partition_days_ahead, SystemClock(), engine.measures.partition_days_ahead)
    server.add(LOG, lambda _: None, room.is_enough)


def main() -> None:
    """Live until told to stop."""
    settings = EngineSettings()  # type: ignore[call-arg]  # the environment gives what is missing
    logs.configure(settings.log_level, settings.log_format)

    async def start(life: Lifecycle) -> None:
        await compose(life, settings)

    sys.exit(run(start, grace=settings.grace))


def _count(engine: Engine) -> None:
    engine.measures.leases.set_function(lambda: len(engine.shards.held()))
    engine.measures.live_tables.set_function(lambda: len(engine.tables))
    engine.measures.quarantined.set_function(lambda: len(engine.tables.quarantined()))


async def _listen(life: Lifecycle, earshot: Earshot) -> None:
    echoes = await earshot.listen()
    life.on_stop("echoes", echoes.stop)
    life.spawn("earshot", earshot.run())


async def _run(life: Lifecycle, engine: Engine, doors: Doors, servicer: Servicer, bus: Bus) -> None:
    life.spawn("outbox", engine.outbox.run())
    life.spawn("comparing", engine.outbox.keep_comparing())
    life.spawn("shards", engine.shards.run())
    handovers = await handover.hear(bus, engine.shards.look)
    life.on_stop("handovers", handovers.stop)
    life.on_stop("leases", engine.shards.release)
    life.on_stop("firing", engine.deadlines.settle)
    life.spawn("deadlines", engine.deadlines.run(engine.tables.pass_deadline))
    life.spawn("sweep", engine.deadlines.keep_sweeping())
    life.spawn("doors", doors.run())
    life.on_stop("doors", doors.close)
    listing = await bus.serve(subjects.LIST, servicer.list, in_flight=IN_FLIGHT)
    life.on_stop("list", listing.stop)
    rematches = await bus.serve(subjects.REMATCH, servicer.rematch, in_flight=IN_FLIGHT)
    life.on_stop("rematches", rematches.stop)


if __name__ == "__main__":
    main()
