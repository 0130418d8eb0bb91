"""A service's facts on their way out: from the outbox in its own schema to the bus, at least once, in order per subject.

Law: knows no fact. A service embeds `OUTBOX` in its migrations and calls `put` in the very transaction that makes the
change a fact tells of; the relay does the rest. A subject's positions are 1, 2, 3 …, each written by a transaction that
holds the row which counts them, so they become visible in order. What is on the bus already, by its position there, is
not published again: neither after a crash between publish and forget, nor by a second replica, nor after a service has
been filled anew from the facts it consumes. Every publish names the sequence it must follow, so two relays cannot double
or reorder; the outbox is a set without a cursor, and a row lives until the bus has acknowledged it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge
from psycopg import AsyncConnection
from psycopg.rows import TupleRow, class_row
from psycopg_pool import AsyncConnectionPool

from engine.runtime.bell import Bell
from engine.runtime.bus import Bus, BusUnavailable, FactMessage, OutOfSequence

_log = structlog.get_logger(__name__)

POSITION = "Gouji-Position"
"""Header: the fact's position among the facts of its subject."""

OUTBOX = """
create table outbox (
    subject text not null,
    position bigint not null,
    event_id text not null,
    payload bytea not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (subject, position)
);
"""
"""The table of facts that are not published yet, for a migration script of the service's schema."""

_PUT = """
insert into outbox (subject, position, event_id, payload) values (%s, %s, %s, %s)
"""

# Of each subject only the first: the next one may go when it is gone.
_PENDING = """
select distinct on (subject) subject, position, event_id, payload
from outbox where subject > %s order by subject, position limit %s
"""

_FORGET = "delete from outbox where subject = %s and position = %s"

_BACKLOG = """
select count(*), coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 from outbox
"""


_TROUBLE = (BusUnavailable, psycopg.OperationalError)
"""What passes by itself."""


@dataclass(frozen=True, slots=True)
class OutgoingFact:
    """A fact to publish. `position` counts the facts of the subject; `event_id` makes a second delivery harmless."""

    subject: str
    position: int
    event_id: str
    payload: bytes


async def put(connection: AsyncConnection[TupleRow], facts: Sequence[OutgoingFact]) -> None:
    """Store facts to publish, inside the caller's transaction."""
    rows = [(fact.subject, fact.position, fact.event_id, fact.payload) for fact in facts]
    async with connection.cursor() as cursor:
        await cursor.executemany(_PUT, rows)


class RelayMeasures:
    """What a relay counts; `service` is part of the names."""

    def __init__(self, registry: CollectorRegistry, service: str) -> None:
        prefix = f"gouji_{service}_outbox"
        self.published = Counter(f"{prefix}_published_total", "Facts acknowledged by the bus.", registry=registry)
        self.outrun = Counter(
            f"{prefix}_outrun_total", "Publishes that another replica was faster with.", registry=registry
        )
        self.troubles = Counter(
            f"{prefix}_troubles_total", "Times that bus or database were in the way.", registry=registry
        )
        self.pending = Gauge(f"{prefix}_pending", "Facts waiting to be published.", registry=registry)
        self.oldest = Gauge(f"{prefix}_oldest_seconds", "How long the oldest fact has been waiting.", registry=registry)


class OutboxRelay:
    """Publishes the outbox of one schema, the search path of the pool. `page` subjects are in flight at most."""

    def __init__(
        self,
        pool: AsyncConnectionPool,
        bus: Bus,
        measures: RelayMeasures,
        *,
        page: int = 64,
        sweep_s: float = 1.0,
    ) -> None:
        self._pool = pool
        self._bus = bus
        self._measures = measures
        self._page = page
        self._bell = Bell(sweep_s)
        self._after = ""

    def wake(self) -> None:
        """There is something to publish."""
        self._bell.ring()

    async def run(self) -> None:
        """Publish for ever, whenever woken, and now and then what a crash or another replica left."""
        while True:
            try:
                await self.sweep()
            except _TROUBLE as trouble:
                self._measures.troubles.inc()
                _log.warning("outbox not swept", cause=type(trouble).__name__)
            await self._bell.sleep()

    async def sweep(self) -> int:
        """Go over all subjects until nothing more can be published now; returns how many facts went out."""
        sent = 0
        try:
            while passed := await self._pass():
                sent += passed
        except BusUnavailable:
            await self._measure()
            raise
        await self._measure()
        return sent

    async def _pass(self) -> int:
        """Publish the first fact of every subject, page by page, going on where trouble broke the last pass off."""
        sent = 0
        while facts := await self._pending(self._after):
            self._after = facts[-1].subject
            sent += await self._page_of(facts)
        self._after = ""
        return sent

    async def _page_of(self, facts: Sequence[OutgoingFact]) -> int:
        """Publish facts of many subjects; trouble with some does not stop the others, trouble with all is raised."""
        outcomes = await asyncio.gather(*(self._publish(fact) for fact in facts), return_exceptions=True)
        sent = sum(outcome is True for outcome in outcomes)
        for failure in (outcome for outcome in outcomes if isinstance(outcome, BaseException)):
            if not sent or not isinstance(failure, _TROUBLE):
                raise failure
            self._measures.troubles.inc()
        return sent

    async def _publish(self, fact: OutgoingFact) -> bool:
        """Publish one fact unless it is there already. False if somebody else came between: the next pass looks again."""
        last = await self._bus.last_fact(fact.subject)
        try:
            if not _is_there(last, fact):
                await self._send(fact, last.sequence if last else 0)
        except OutOfSequence:
            self._measures.outrun.inc()
            return False
        await self._forget(fact)
        return True

    async def _send(self, fact: OutgoingFact, expected_sequence: int) -> None:
        await self._bus.publish_fact(
            fact.subject,
            fact.payload,
            event_id=fact.event_id,
            expected_sequence=expected_sequence,
            headers={POSITION: str(fact.position)},
        )
        self._measures.published.inc()

    async def _pending(self, after: str) -> Sequence[OutgoingFact]:
        async with (
            self._pool.connection() as connection,
            connection.cursor(row_factory=class_row(OutgoingFact)) as rows,
        ):
            await rows.execute(_PENDING, (after, self._page))
            return await rows.fetchall()

    async def _forget(self, fact: OutgoingFact) -> None:
        async with self._pool.connection() as connection:
            await connection.execute(_FORGET, (fact.subject, fact.position))

    async def _measure(self) -> None:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(_BACKLOG)
            pending, oldest = await cursor.fetchone() or (0, 0.0)
        self._measures.pending.set(pending)
        self._measures.oldest.set(oldest)


def _is_there(last: FactMessage | None, fact: OutgoingFact) -> bool:
    """Whether the newest message of the subject is this fact or a later one."""
    return last is not None and int(last.headers.get(POSITION, "0")) >= fact.position
