"""The facts on the bus held against the log, and told again where the bus has lost them.

Law: the log is the truth. What is published is what the log says, in order, each fact after the one before it, so that
telling again what is there already changes nothing. What the bus holds otherwise is reported, never overwritten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple, Protocol
from uuid import UUID

from engine.runtime import subjects
from engine.runtime.bus import Bus, FactMessage, OutOfSequence
from engine.runtime.gate import PREVIOUS_HASH
from engine.runtime.outbox_relay import POSITION
from engine.service import codec
from engine.service.codec import UnknownEvent
from engine.service.facts import FactEvent
from engine.service.outbox import EVENT_ID
from engine.service.standing import Standing, Step, advanced, every_event
from engine.store.port import GENESIS, SHARDS, Log, OutboxEntry, PendingFact, StoredEvent, StreamHead

_AT_ONCE = 32
_PAGE = 5000
_ATTEMPTS = 5
_SETTLE_S = 0.5

FactsOf = Callable[[UUID, Sequence[Step]], tuple[OutboxEntry, ...]]


class Streams(Log, Protocol):
    """A store whose streams can be gone through, and what waits in it to be published."""

    async def every_stream(self, first: UUID, limit: int) -> Sequence[StreamHead]:
        """Streams, open or closed, from this table id on, by table id."""
        ...

    async def pending_facts(self, shards: Sequence[int], limit: int) -> Sequence[PendingFact]:
        """Outbox rows that are not published."""
        ...


class Verdict(StrEnum):
    """How the bus stands to a table's log."""

    WHOLE = "whole"
    """The bus has every fact."""
    WAITING = "waiting"
    """The newest facts wait in the outbox; the engine publishes them."""
    MISSING = "missing"
    """The newest facts are lost; telling again brings them."""
    HOLE = "hole"
    """Earlier facts are missing before later ones, or stand twice."""
    FORK = "fork"
    """The bus has another fact than the log in the same place: one of them lost acknowledged events."""
    SURPLUS = "surplus"
    """The bus has facts beyond the log, or of a table that the log does not have."""
    UNREADABLE = "unreadable"
    """This release cannot fold the log, or its day has left the database."""


SOUND = frozenset({Verdict.WHOLE, Verdict.WAITING})
"""What needs nobody."""


class Finding(NamedTuple):
    """One table: facts in its log, the position of its newest fact on the bus, and how many were told again."""

    table_id: UUID
    verdict: Verdict
    in_log: int = 0
    on_bus: int = 0
    told: int = 0


@dataclass(frozen=True, slots=True)
class LoggedFact:
    """A fact as the log tells it, and the hash before its command's last event, which it carries on the bus."""

    entry: OutboxEntry
    previous_hash: bytes


class Gone(Exception):
    """The table's events are no longer in the database: they are in an archive."""


Report = Callable[[Finding], None]
Waiting = frozenset[tuple[UUID, int]]
"""Tables and positions of the facts that wait in the outbox."""


async def facts_in_log(log: Log, head: StreamHead, facts_of: FactsOf) -> list[LoggedFact]:
    """Every fact of a table, in order. Raises `UnknownEvent`, `Gone`."""
    events = await every_event(log, head.table_id)
    if not events and head.version:
        raise Gone
    before = _hash_before(events)
    facts: list[Step] = []
    standing = Standing()
    for stored in events:
        event = codec.decode(stored.type, stored.schema, stored.payload)
        standing = advanced(standing, event)
        if isinstance(event, FactEvent):
            facts.append(Step(event, stored.at_ms, standing))
    entries = facts_of(head.table_id, facts)
    return [LoggedFact(entry, before[step.standing.version]) for entry, step in zip(entries, facts, strict=True)]


def _hash_before(events: Sequence[StoredEvent]) -> dict[int, bytes]:
    """By version, the hash before the last event of the command that the event belongs to."""
    hashes = [GENESIS, *(event.hash for event in events)]
    before: dict[int, bytes] = {}
    for _, command in groupby(events, key=lambda event: event.command_id):
        versions = [event.version for event in command]
        before.update(dict.fromkeys(versions, hashes[versions[-1] - 1]))
    return before


class Reconciliation:
    """Goes through the tables from one id on. Methods raise `StoreUnavailable`, `BusUnavailable`."""

    def __init__(self, store: Streams, bus: Bus, facts_of: FactsOf) -> None:
        self._store = store
        self._bus = bus
        self._facts_of = facts_of
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def tables(self, first: UUID) -> list[StreamHead]:
        """The streams to look at."""
        heads: list[StreamHead] = []
        while page := await self._store.every_stream(first, _PAGE):
            heads += page
            first = UUID(int=page[-1].table_id.int + 1)
        return heads

    async def check(self, first: UUID, heads: Sequence[StreamHead], report: Report) -> None:
        """Compare each of the tables from this id on, and look for facts of tables that the log does not have."""
        suspects: list[StreamHead] = []
        by_id = {head.table_id: head for head in heads}

        def sift(finding: Finding) -> None:
            if finding.verdict in SOUND:
                report(finding)
            else:
                suspects.append(by_id[finding.table_id])

        await self._compare(heads, sift)
        if suspects:
            # Tables may have moved on between a look at the log and one at the bus.
            await asyncio.sleep(_SETTLE_S)
            await self._compare(suspects, report)
        await self._report_strangers(first, by_id, report)

    async def rebuild(self, heads: Sequence[StreamHead], report: Report) -> None:
        """Tell again what the bus lost at the end of each table's facts, and report how each table stands then."""

        async def tell(head: StreamHead) -> Finding:
            try:
                facts = await facts_in_log(self._store, head, self._facts_of)
            except (UnknownEvent, Gone):
                return Finding(head.table_id, Verdict.UNREADABLE)
            told = await self._tell(head.table_id, facts)
            finding = await self._judge(head.table_id, facts, {}, frozenset())
            if finding.verdict not in SOUND:
                # The table may have moved on since its log was read.
                await asyncio.sleep(_SETTLE_S)
                finding = await self._look(head, {}, await self._waiting())
            return finding._replace(told=told)

        await self._each(heads, tell, report)

    async def _each(
        self, heads: Sequence[StreamHead], work: Callable[[StreamHead], Awaitable[Finding]], report: Report
    ) -> None:
        async def one(head: StreamHead) -> None:
            async with self._slots:
                report(await work(head))

        for start in range(0, len(heads), _PAGE):
            await asyncio.gather(*(one(head) for head in heads[start : start + _PAGE]))

    async def _compare(self, heads: Sequence[StreamHead], report: Report) -> None:
        counts = await self._bus.count_facts(subjects.FACTS) if heads else {}
        waiting = await self._waiting()
        await self._each(heads, lambda head: self._look(head, counts, waiting), report)

    async def _look(self, head: StreamHead, counts: Mapping[str, int], waiting: Waiting) -> Finding:
        try:
            facts = await facts_in_log(self._store, head, self._facts_of)
        except (UnknownEvent, Gone):
            return Finding(head.table_id, Verdict.UNREADABLE)
        return await self._judge(head.table_id, facts, counts, waiting)

    async def _judge(
        self, table_id: UUID, facts: Sequence[LoggedFact], counts: Mapping[str, int], waiting: Waiting
    ) -> Finding:
        """Hold facts against the bus. A table whose count does not fit is counted again, for `counts` may be old."""
        subject = subjects.fact(table_id)
        last = await self._bus.last_fact(subject)
        if counts.get(subject, 0) != _position(last):
            counts = await self._bus.count_facts(subject)
        return _judged(table_id, facts, last, counts.get(subject, 0), waiting)

    async def _report_strangers(self, first: UUID, known: Container[UUID], report: Report) -> None:
        """Report tables on the bus that should be among these and are not, nor have been opened meanwhile."""
        counts = await self._bus.count_facts(subjects.FACTS)
        strangers = {
            table_id: count
            for subject, count in counts.items()
            if (table_id := _table_of(subject)) is not None and table_id >= first and table_id not in known
        }
        opened = {head.table_id for head in await self.tables(min(strangers))} if strangers else set()
        for table_id in strangers.keys() - opened:
            report(Finding(table_id, Verdict.SURPLUS, 0, strangers[table_id]))

    async def _waiting(self) -> Waiting:
        pending = await self._store.pending_facts(range(SHARDS), _PAGE)
        return frozenset((fact.table_id, fact.entry.position) for fact in pending)

    async def _tell(self, table_id: UUID, facts: Sequence[LoggedFact]) -> int:
        """Publish the facts after the bus's last one, if that is the log's; somebody else may publish meanwhile."""
        told = 0
        for _ in range(_ATTEMPTS):
            last = await self._bus.last_fact(subjects.fact(table_id))
            position = _position(last)
            if position >= len(facts) or not _agrees(facts, last):
                break
            try:
                sequence = last.sequence if last else 0
                for fact in facts[position:]:
                    sequence = await self._publish(fact, sequence)
                    told += 1
            except OutOfSequence:
                continue
        return told

    async def _publish(self, fact: LoggedFact, expected_sequence: int) -> int:
        entry = fact.entry
        return await self._bus.publish_fact(
            entry.subject,
            entry.payload,
            event_id=entry.event_id,
            expected_sequence=expected_sequence,
            headers={POSITION: str(entry.position), PREVIOUS_HASH: fact.previous_hash.hex()},
        )


def _table_of(subject: str) -> UUID | None:
    try:
        return UUID(subject.rsplit(".", 1)[-1])
    except ValueError:
        return None


def _judged(
    table_id: UUID,
    facts: Sequence[LoggedFact],
    last: FactMessage | None,
    count: int,
    waiting: Waiting,
) -> Finding:
    position, due = _position(last), len(facts)
    rest = {(table_id, place) for place in range(position + 1, due + 1)}
    if position > due:
        verdict = Verdict.SURPLUS
    elif not _agrees(facts, last):
        verdict = Verdict.FORK
    elif count != position:
        verdict = Verdict.HOLE
    elif rest:
        verdict = Verdict.WAITING if rest <= waiting else Verdict.MISSING
    else:
        verdict = Verdict.WHOLE
    return Finding(table_id, verdict, due, position)


def _position(last: FactMessage | None) -> int:
    """The place of a message among its table's facts; 0 for none, and for one that is no fact of ours."""
    written = last.headers.get(POSITION, "") if last else ""
    return int(written) if written.isdecimal() else 0


def _agrees(facts: Sequence[LoggedFact], last: FactMessage | None) -> bool:
    """Whether the bus's newest fact is the one that the log has in this place, after the same events."""
    if last is None:
        return True
    position = _position(last)
    if not 0 < position <= len(facts):
        return False
    fact = facts[position - 1]
    due = (fact.entry.event_id, fact.previous_hash.hex())
    return (last.headers.get(EVENT_ID), last.headers.get(PREVIOUS_HASH)) == due
