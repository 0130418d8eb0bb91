"""Facts on their way out: from the outbox in the store to the bus, at least once, in order per table.

Law: the store is the truth and the bus can be rebuilt. One fact of a table is in flight at a time, many tables go in
parallel, and every publish names the sequence that it must follow, so that a crash, a retry or a second publisher
neither doubles nor reorders. A table whose facts on the bus contradict the log is parked and counted; others go on.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

import structlog

from engine.runtime import subjects
from engine.runtime.bell import Bell
from engine.runtime.bus import Bus, BusUnavailable, FactMessage, OutOfSequence
from engine.runtime.clock import Clock
from engine.runtime.gate import PREVIOUS_HASH
from engine.runtime.outbox_relay import POSITION
from engine.runtime.uuid7 import made_at_ms
from engine.service.measures import Measures
from engine.service.shards import Shards
from engine.store.port import EventStore, PendingFact, StoreUnavailable, shard_of

_log = structlog.get_logger(__name__)

EVENT_ID = "Nats-Msg-Id"
"""Header: the fact's event id, as the bus sets it."""

_ROUND = 1000
_REMEMBERED = 4096
_PARKED_S = 30.0
_COMPARE_S = 60.0
_COMPARED_MS = 29 * 86_400_000
"""How old a table may be whose facts are compared: a day less than facts stay on the bus."""


class Contradiction(Exception):
    """The bus holds facts of this table that the log does not bear out: an operator has to look."""


class Hole(Contradiction):
    """The bus has lost earlier facts of this table: an operator has to tell them again."""


@dataclass(frozen=True, slots=True)
class Published:
    """The newest fact of a table on the bus."""

    position: int
    sequence: int


NOTHING = Published(0, 0)


class _Parked(NamedTuple):
    """A table that waits for an operator: when to look again (monotonic seconds), and what is wrong."""

    until: float
    is_hole: bool


class _Told(NamedTuple):
    """How many facts of a table went out, and what kept the next one back, if anything that passes by itself."""

    sent: int
    trouble: str = ""


class Outbox:
    """The sweeper of this replica's shards."""

    def __init__(
        self, store: EventStore, bus: Bus, clock: Clock, shards: Shards, *, measures: Measures, sweep_ms: int
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._shards = shards
        self._measures = measures
        self._bell = Bell(sweep_ms / 1000)
        self._last: OrderedDict[UUID, Published] = OrderedDict()
        self._parked: dict[UUID, _Parked] = {}
        self._lost: frozenset[UUID] = frozenset()
        self._waiting: dict[tuple[UUID, int], float] = {}

    def nudge(self) -> None:
        """There is something to publish."""
        self._bell.ring()

    async def run(self) -> None:
        """Publish for ever, whenever nudged, and now and then what a crash left behind."""
        while True:
            try:
                await self.sweep()
            except StoreUnavailable:
                _log.warning("outbox not swept")
            await self._bell.sleep()

    async def keep_comparing(self) -> None:
        """Compare now and then, for ever."""
        while True:
            await self._clock.sleep(_COMPARE_S)
            try:
                await self.compare()
            except BusUnavailable:
                _log.warning("facts not compared")

    async def compare(self) -> None:
        """Count the tables of which the bus has fewer facts than it has acknowledged: it has lost the newest ones."""
        counts = await self._bus.count_facts(subjects.FACTS)
        since_ms = self._clock.now_ms() - _COMPARED_MS
        self._lost = frozenset(
            table
            for table, last in self._last.items()
            if made_at_ms(table) > since_ms and counts.get(subjects.fact(table), 0) < last.position
        )
        if self._lost:
            _log.error("facts lost", tables=len(self._lost))
        self._count_parked()

    async def sweep(self) -> int:
        """One round over everything pending; returns how many facts went out."""
        pending = await self._store.pending_facts(self._shards.held(), _ROUND + len(self._parked))
        self._measure(pending)
        tables = [tuple(facts) for _, facts in groupby(pending, key=lambda fact: fact.table_id)]
        told = await asyncio.gather(*(self._table(facts) for facts in tables if self._may_try(facts[0].table_id)))
        self._count_parked()
        # One line a round: a bus that is away for hours must not fill the disk of the logs.
        for cause, count in Counter(one.trouble for one in told if one.trouble).items():
            _log.warning("facts not published", tables=count, cause=cause)
        return sum(one.sent for one in told)

    async def _table(self, facts: Sequence[PendingFact]) -> _Told:
        """Publish the facts of one table in order, as far as it goes; the next round takes up the rest."""
        sent = 0
        try:
            for fact in facts:
                await self._publish(fact)
                self._parked.pop(fact.table_id, None)
                await self._store.mark_published(fact.table_id, fact.entry.position)
                sent += 1
        except (BusUnavailable, StoreUnavailable, OutOfSequence) as error:
            return _Told(sent, type(error).__name__)
        except Contradiction as error:
            self._park(facts[sent], error)
        return _Told(sent)

    async def _publish(self, fact: PendingFact) -> None:
        """Publish one fact after the one before it, unless it is out already."""
        try:
            await self._publish_after(fact, await self._last_of(fact))
        except OutOfSequence:
            await self._publish_after(fact, await self._look(fact))

    async def _publish_after(self, fact: PendingFact, last: Published) -> None:
        position = fact.entry.position
        if last.position >= position:
            await self._confirm(fact)
            return
        if last.position < position - 1:
            raise Hole("earlier facts are missing on the bus")
        sequence = await self._send(fact, last.sequence)
        self._remember(fact.table_id, Published(position, sequence))

    async def _confirm(self, fact: PendingFact) -> None:
        """Make sure that what has this fact's place on the bus is this fact: else one of the two logs was lost."""
        due = (fact.entry.event_id, fact.previous_hash.hex())
        there = await self._bus.fact_after(fact.entry.subject, 0)
        while there is not None and _position(there) < fact.entry.position:
            there = await self._bus.fact_after(fact.entry.subject, there.sequence)
        if there is None or (there.headers.get(EVENT_ID), there.headers.get(PREVIOUS_HASH)) != due:
            raise Contradiction("another fact has this place on the bus")

    async def _send(self, fact: PendingFact, expected_sequence: int) -> int:
        entry = fact.entry
        headers = {POSITION: str(entry.position), PREVIOUS_HASH: fact.previous_hash.hex()}
        return await self._bus.publish_fact(
            entry.subject,
            entry.payload,
            event_id=entry.event_id,
            expected_sequence=expected_sequence,
            headers=headers,
        )

    async def _last_of(self, fact: PendingFact) -> Published:
        """What this replica knows to be out; a first fact needs no look, for the bus checks it."""
        known = self._last.get(fact.table_id)
        if known is not None and known.position >= fact.entry.position - 1:
            return known
        return NOTHING if fact.entry.position == 1 else await self._look(fact)

    async def _look(self, fact: PendingFact) -> Published:
        message = await self._bus.last_fact(fact.entry.subject)
        if message is None:
            return NOTHING
        last = Published(_position(message), message.sequence)
        self._remember(fact.table_id, last)
        return last

    def _remember(self, table_id: UUID, last: Published) -> None:
        self._last[table_id] = last
        self._last.move_to_end(table_id)
        if len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)

    def _may_try(self, table_id: UUID) -> bool:
        """Whether the table is not parked, or has been for so long that an operator may have mended the bus."""
        parked = self._parked.get(table_id)
        return parked is None or self._clock.monotonic() >= parked.until

    def _park(self, fact: PendingFact, reason: Contradiction) -> None:
        is_hole = isinstance(reason, Hole)
        if fact.table_id not in self._parked:
            position = fact.entry.position
            _log.error("facts parked", table=str(fact.table_id), position=position, reason=str(reason))
        self._last.pop(fact.table_id, None)
        self._parked[fact.table_id] = _Parked(self._clock.monotonic() + _PARKED_S, is_hole)

    def _count_parked(self) -> None:
        """Count the tables parked; those whose shard is led elsewhere now are that replica's."""
        held = frozenset(self._shards.held())
        self._parked = {table: parked for table, parked in self._parked.items() if shard_of(table) in held}
        holes = {table for table, parked in self._parked.items() if parked.is_hole}
        lost = {table for table in self._lost if shard_of(table) in held}
        self._measures.outbox_parked.set(len(self._parked))
        self._measures.outbox_holes.set(len(holes | lost))
        self._measures.outbox_forks.set(len(self._parked) - len(holes))

    def _measure(self, pending: Sequence[PendingFact]) -> None:
        """Count what waits, and since when the oldest does (by this replica's own clock)."""
        now = self._clock.monotonic()
        self._waiting = {
            (fact.table_id, fact.entry.position): self._waiting.get((fact.table_id, fact.entry.position), now)
            for fact in pending
        }
        self._measures.outbox_pending.set(len(pending))
        self._measures.outbox_oldest.set(now - min(self._waiting.values(), default=now))


def _position(message: FactMessage) -> int:
    """A message's place among its table's facts. Raises `Contradiction`."""
    written = message.headers.get(POSITION, "")
    if not written.isdecimal():
        raise Contradiction("a foreign message has the table's subject")
    return int(written)
