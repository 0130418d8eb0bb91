"""A service's facts on their way in: each takes effect once, in order per source; what cannot is set aside.

Law: knows no fact. A service embeds `INBOX` (gate.py) and `PARKED` in its migrations, and passes a reader (bytes to
position and fact) and an effect (SQL in the transaction that also moves the position). A source is a subject. A fact
that can never take effect, or whose predecessors do not come, is parked with everything after it of its source: it is
acknowledged, counted and kept; other sources go on. It gets another try when a missing predecessor arrives after all,
or when an operator releases its source. A source whose log forked stays aside until the service is filled anew. Trouble
with the database is no poison: the fact comes again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

import psycopg
import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge
from psycopg import AsyncConnection
from psycopg.rows import TupleRow, class_row
from psycopg_pool import AsyncConnectionPool

from engine.runtime.bus import FactMessage
from engine.runtime.gate import PREVIOUS_HASH, Fork, Hole, Verdict, admit, note_fork

_log = structlog.get_logger(__name__)

PARKED = """
create table parked (
    source text not null,
    sequence bigint not null,
    position bigint not null,
    payload bytea not null,
    complaint text not null,
    parked_at timestamptz not null default clock_timestamp(),
    primary key (source, sequence)
);
"""
"""The table of facts set aside, for a migration script of the consumer's schema. Position 0: unreadable."""

PARKED_HASH = """
alter table parked add column previous_hash text not null default '';
"""
"""What `PARKED` lacks to notice forks, for a migration script of the consumer's schema."""

_PARK = """
insert into parked (source, sequence, position, payload, previous_hash, complaint) values (%s, %s, %s, %s, %s, %s)
on conflict (source, sequence) do update set complaint = excluded.complaint
"""
_IS_PARKED = "select exists (select from parked where source = %s)"
_OF_SOURCE = (
    "select sequence, payload, previous_hash from parked where source = %s order by position, sequence limit %s"
)
_UNPARK = "delete from parked where source = %s and sequence = %s"
_SOURCES = "select (select count(distinct source) from parked), (select count(*) from inbox where forked)"

_PARKED_FACTS = """
select source, position, complaint, parked_at from parked order by source, position, sequence limit %s
"""

_UNREADABLE = 0
_LISTED_AT_ONCE = 1000
_RELEASED_AT_ONCE = 1000

Fact = TypeVar("Fact")


class Poison(Exception):
    """The fact can never take effect: set it aside."""


@dataclass(frozen=True, slots=True)
class Arrival(Generic[Fact]):
    """A fact that was read, and its position 1, 2, 3 … within its source."""

    position: int
    fact: Fact


@dataclass(frozen=True, slots=True)
class ParkedFact:
    """A fact set aside, and why."""

    source: str
    position: int
    complaint: str
    parked_at: datetime


Reader = Callable[[FactMessage], Arrival[Fact]]
"""Reads a message; raises `Poison`."""
Effect = Callable[[AsyncConnection[TupleRow], Fact], Awaitable[None]]
"""Makes a fact's effect in the caller's transaction; raises `Poison`."""


class IntakeMeasures:
    """What an intake counts; `service` is part of the names."""

    def __init__(self, registry: CollectorRegistry, service: str) -> None:
        prefix = f"gouji_{service}_intake"
        self.facts = Counter(f"{prefix}_facts_total", "Facts by what became of them.", ["result"], registry=registry)
        self.parked = Gauge(f"{prefix}_parked_sources", "Sources with facts set aside: look.", registry=registry)
        self.forked = Gauge(f"{prefix}_forked_sources", "Sources whose log was replaced: alarm.", registry=registry)


class Intake(Generic[Fact]):
    """The handler of a durable subscription, for the schema that is the search path of the pool.

    `patience` is how many deliveries a fact gets that fails for an unknown reason or misses its predecessor.
    """

    def __init__(
        self,
        pool: AsyncConnectionPool,
        read: Reader[Fact],
        effect: Effect[Fact],
        measures: IntakeMeasures,
        *,
        patience: int = 5,
    ) -> None:
        self._pool = pool
        self._read = read
        self._effect = effect
        self._measures = measures
        self._patience = patience

    async def take(self, message: FactMessage) -> None:
        """Let a fact take effect or set it aside. What it raises means: not now, deliver it again."""
        try:
            verdict = await self._apply(message)
        except Poison as poison:
            await self._park(message, str(poison))
        except Fork as fork:
            await self._set_aside_fork(message, fork)
        except Hole as hole:
            await self._wait_or_park(message, hole)
        except psycopg.OperationalError:
            raise
        except Exception as fault:
            _log.exception("fact failed", source=message.subject, deliveries=message.deliveries)
            if message.deliveries < self._patience:
                raise
            await self._park(message, type(fault).__name__)
        else:
            self._measures.facts.labels(verdict.name.lower()).inc()
            if verdict is Verdict.APPLY and await self._is_parked(message.subject):
                await self.release(message.subject)

    async def release(self, source: str) -> int:
        """Give the parked facts of a source another try, in order; returns how many are parked no more."""
        released = 0
        async with self._pool.connection() as connection:
            cursor = await connection.execute(_OF_SOURCE, (source, _RELEASED_AT_ONCE))
            rows = await cursor.fetchall()
        for sequence, payload, previous_hash in rows:
            headers = {PREVIOUS_HASH: previous_hash}
            released += await self._release(FactMessage(source, payload, headers, sequence, 1))
        await self.measure()
        return released

    async def _release(self, message: FactMessage) -> bool:
        try:
            await self._apply(message, parked=True)
        except psycopg.OperationalError:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, this fact stays where it is and the others go on
            _log.exception("fact stays parked", source=message.subject, sequence=message.sequence)
            return False
        return True

    async def parked(self) -> Sequence[ParkedFact]:
        """List what is set aside, by source and position; at most a thousand facts."""
        async with self._pool.connection() as connection, connection.cursor(row_factory=class_row(ParkedFact)) as rows:
            await rows.execute(_PARKED_FACTS, (_LISTED_AT_ONCE,))
            return await rows.fetchall()

    async def measure(self) -> None:
        """Count again how many sources have facts set aside, and how many have forked."""
        async with self._pool.connection() as connection:
            cursor = await connection.execute(_SOURCES)
            parked, forked = await cursor.fetchone() or (0, 0)
        self._measures.parked.set(parked)
        self._measures.forked.set(forked)

    async def _apply(self, message: FactMessage, *, parked: bool = False) -> Verdict:
        """Make gate, effect and the end of parking one transaction."""
        arrival = self._read(message)
        async with self._pool.connection() as connection:
            verdict = await admit(connection, message.subject, arrival.position, _previous_hash(message))
            if verdict is Verdict.APPLY:
                await self._effect(connection, arrival.fact)
            if parked:
                await connection.execute(_UNPARK, (message.subject, message.sequence))
        return verdict

    async def _wait_or_park(self, message: FactMessage, hole: Hole) -> None:
        """Ask for the fact again, unless it has waited long enough or its source is parked anyway."""
        if message.deliveries < self._patience and not await self._is_parked(message.subject):
            raise hole
        await self._park(message, f"position {hole.position} after {hole.last}")

    async def _set_aside_fork(self, message: FactMessage, fork: Fork) -> None:
        async with self._pool.connection() as connection:
            await note_fork(connection, fork.source)
        _log.critical("source forked", source=fork.source, position=fork.position)
        await self._park(message, f"fork at position {fork.position}")

    async def _park(self, message: FactMessage, complaint: str) -> None:
        place = (message.subject, message.sequence, self._position(message))
        async with self._pool.connection() as connection:
            await connection.execute(_PARK, (*place, message.payload, _previous_hash(message), complaint))
        _log.error("fact parked", source=message.subject, sequence=message.sequence, complaint=complaint)
        self._measures.facts.labels("parked").inc()
        await self.measure()

    def _position(self, message: FactMessage) -> int:
        try:
            return self._read(message).position
        except Poison:
            return _UNREADABLE

    async def _is_parked(self, source: str) -> bool:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(_IS_PARKED, (source,))
            (is_parked,) = await cursor.fetchone() or (False,)
        return bool(is_parked)


def _previous_hash(message: FactMessage) -> str:
    return message.headers.get(PREVIOUS_HASH, "")
