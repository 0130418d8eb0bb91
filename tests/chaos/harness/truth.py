"""A table as a fresh process tells it: read from Postgres, folded, redacted, exported and verified, all by the log alone.

Law: knows the owner's dsn and a table id, nothing of what ran before; called in processes of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from uuid import UUID

import psycopg
from gouji.game.v1 import view_pb2
from gouji.table.v1 import table_pb2

from engine import match
from engine.match.events import Event
from engine.rules.events import DealEnded, TimedOut
from engine.runtime.bus import FactMessage
from engine.service import codec, wire
from engine.service.envelopes import wire as envelopes
from engine.service.export import export
from engine.service.standing import Standing, Step, advanced
from engine.service.verifier import verify_notation
from engine.store.port import OutboxEntry, StoredEvent, StreamNotFound
from services.ranking import wire as ranking
from services.ranking.fold import Result
from tests.chaos.harness.evidence import Fact, Head, Logged, Timeout, Truth

AUDIENCES: tuple[int | None, ...] = (*match.SEATS, None)

_HEAD = "select version, head, closed, deadline_at_ms from engine.stream where table_id = %s"
_LOG = """
select table_id, version, type, schema, payload, actor, command_id, trace_id, at_ms, hash, ends_command
from engine.event where table_id = %s order by version
"""


Views = Collection[tuple[str, int]]
"""Audiences and versions."""


def truth_of(dsn: str, table_id: UUID, views: Views) -> Truth:
    """Everything that follows from a table's log, these views among it. Raises `StreamNotFound`."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(_HEAD, (table_id,)).fetchone()
        rows = connection.execute(_LOG, (table_id,)).fetchall()
    if row is None:
        raise StreamNotFound
    log = [Logged(StoredEvent(*fields), ends_command) for *fields, ends_command in rows]
    return told_by(table_id, Head(*row), log, views)


def told_by(table_id: UUID, head: Head, log: Sequence[Logged], views: Views = ()) -> Truth:
    """The same from rows that are at hand."""
    steps = list(_steps(log))
    entries = envelopes.facts(table_id, steps)
    return Truth(
        table_id,
        head,
        log,
        forms={
            envelopes.audience_name(audience): [form_of(step, audience) for step in steps] for audience in AUDIENCES
        },
        states=[codec.state_hash(step.standing.match) for step in steps],
        facts=[Fact(entry.position, entry.event_id, entry.payload) for entry in entries],
        results={entry.position: result for entry in entries if (result := _result(entry)) is not None},
        timeouts=list(_timeouts(steps)),
        unfit=list(_unfit(log, steps)),
        views={one: _view(table_id, steps, *one) for one in views if one[1] <= len(steps)},
    )


def digest_of(versioned: table_pb2.VersionedEvent) -> bytes:
    """A digest of an event as it is shown."""
    return sha256(versioned.SerializeToString(deterministic=True)).digest()[:16]


def form_of(step: Step, audience: int | None) -> bytes:
    """A digest of a step in the form for this audience."""
    return digest_of(envelopes.versioned(step, audience))


def view_digest(view: view_pb2.View) -> bytes:
    """A digest of a view without what is no part of the log: who is connected, and the moment of the deadline."""
    bare = view_pb2.View()
    bare.CopyFrom(view)
    bare.public.deadline_at_ms = 0
    for seat in bare.public.seats:
        seat.connected = False
    return sha256(bare.SerializeToString(deterministic=True)).digest()[:16]


def _view(table_id: UUID, steps: Sequence[Step], audience: str, version: int) -> bytes:
    state = steps[version - 1].standing.match
    seat = None if audience == envelopes.PUBLIC else int(audience[-1])
    return view_digest(wire.view(table_id, state, seat, version, wire.public_part(state)))


def _steps(log: Sequence[Logged]) -> Iterator[Step]:
    standing = Standing()
    for stored, _ in log:
        event: Event = codec.decode(stored.type, stored.schema, stored.payload)
        standing = advanced(standing, event)
        yield Step(event, stored.at_ms, standing)


def _result(entry: OutboxEntry) -> Result | None:
    return ranking.entry_from_fact(FactMessage(entry.subject, entry.payload, {}, 0, 1)).fact.result


def _timeouts(steps: Sequence[Step]) -> Iterator[Timeout]:
    before = match.EMPTY
    for step in steps:
        wait = match.waiting(before)
        if isinstance(step.event, TimedOut) and wait is not None:
            yield Timeout(wait.since, step.event.seat, step.standing.version)
        before = step.standing.match


def _unfit(log: Sequence[Logged], steps: Sequence[Step]) -> Iterator[str]:
    events = [row.event for row in log]
    for step in steps:
        if isinstance(step.event, DealEnded):
            deal = step.standing.match.deal_number
            for line, message in verify_notation(export(events, deal)):
                yield f"deal {deal}, line {line}: {message}"
