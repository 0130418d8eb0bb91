"""The engine process, put together.

Law: plain constructor calls, in order of need, each with how it is stopped; no rule, no logic. Stopping goes the other
way: first the doors close, then what is under way ends, then the shards are handed over.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from engine.runtime import subjects
from engine.runtime.bus import Bus
from engine.runtime.clock import Clock, SystemClock
from engine.runtime.lifecycle import Lifecycle
from engine.service.deadlines import Deadlines
from engine.service.dealer import Dealer
from engine.service.doors import IN_FLIGHT, Doors
from engine.service.envelopes import wire as envelopes
from engine.service.history import History
from engine.service.ledger import Ledger
from engine.service.listing import Listing
from engine.service.matches_client import DURABLE, Matches
from engine.service.measures import Measures
from engine.service.outbox import Outbox
from engine.service.servicer import Servicer
from engine.service.settings import EngineTerms
from engine.service.shards import Shards
from engine.service.showing import Showing
from engine.service.table import House
from engine.service.tables import Tables
from engine.store.port import EventStore


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts of a running engine that others look at."""

    shards: Shards
    tables: Tables
    deadlines: Deadlines
    outbox: Outbox


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
    shards = Shards(store, clock, terms.owner, terms.leases)
    deadlines = Deadlines(store, clock, shards, terms.sweep_ms)
    outbox = Outbox(store, bus, clock, shards, measures=measures, sweep_ms=terms.sweep_ms)
    house = House(
        store=store,
        ledger=Ledger(store, measures),
        clock=clock,
        dealer=dealer,
        spans=terms.spans,
        measures=measures,
        show=Showing(bus, measures).show,
        arm=deadlines.arm,
        nudge_outbox=outbox.nudge,
        facts_of=envelopes.facts,
        mailbox=terms.mailbox,
    )
    tables = Tables(house, shards, terms.live_tables)
    servicer = Servicer(store, tables, History(store, tables), Listing(store), dealer)
    behind = {
        subjects.command: servicer.command,
        subjects.history: servicer.history,
        subjects.export: servicer.export,
    }
    doors = Doors(bus, behind)
    shards.follow((tables, deadlines, doors))
    measures.leases.set_function(lambda: len(shards.held()))
    measures.live_tables.set_function(lambda: len(tables))
    measures.quarantined.set_function(lambda: len(tables.quarantined()))
    engine = Engine(shards, tables, deadlines, outbox)
    await _run(life, engine, doors, servicer, bus)
    return engine


async def _run(life: Lifecycle, engine: Engine, doors: Doors, servicer: Servicer, bus: Bus) -> None:
    life.spawn("outbox", engine.outbox.run())
    life.spawn("shards", engine.shards.run())
    life.on_stop("leases", engine.shards.release)
    life.on_stop("firing", engine.deadlines.settle)
    life.spawn("deadlines", engine.deadlines.run(engine.tables.pass_deadline))
    life.spawn("sweep", engine.deadlines.keep_sweeping())
    life.spawn("doors", doors.run())
    life.on_stop("doors", doors.close)
    listing = await bus.serve(subjects.LIST, servicer.list, in_flight=IN_FLIGHT)
    life.on_stop("list", listing.stop)
    matches = await bus.consume(subjects.MATCHES, DURABLE, Matches(bus).take)
    life.on_stop("matches", matches.stop)
