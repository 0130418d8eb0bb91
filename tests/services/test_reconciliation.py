"""The facts on a real bus held against the log, and told again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import nats
import pytest
from gouji.engine.v1 import engine_pb2 as engine
from nats.js import JetStreamContext
from prometheus_client import CollectorRegistry
from psycopg_pool import AsyncConnectionPool

from engine.runtime import subjects
from engine.runtime.bus import FactMessage
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.facts_nats import counts
from engine.runtime.gate import PREVIOUS_HASH
from engine.runtime.outbox_relay import POSITION
from engine.runtime.uuid7 import uuid7
from engine.service.envelopes import wire as envelopes
from engine.service.outbox import EVENT_ID
from engine.service.reconciliation import SOUND, Finding, Reconciliation, Verdict, facts_in_log
from engine.store.memory import MemoryEventStore
from engine.store.port import Append, NewEvent, StreamHead
from services.ranking.main import new_intake
from tests.support.engine_bench import Callers, Replica, accepted, eventually, start

ALL = UUID(int=0)


class Bench:
    """An engine on a real bus, and an operator beside it."""

    def __init__(self, replica: Replica, store: MemoryEventStore, bus: NatsBus, jetstream: JetStreamContext) -> None:
        self.replica = replica
        self.store = store
        self.bus = bus
        self.jetstream = jetstream
        self.reconciliation = Reconciliation(store, bus, envelopes.facts)

    async def played(self, deals: int = 1) -> UUID:
        """A match that was played to its end, all its facts on the bus."""
        callers = Callers(self.bus)
        await callers.open_with_six(deals=deals)
        for _ in range(deals):
            await callers.all_ready()
            await callers.play()
        await self.published()
        return callers.table_id

    async def closed(self) -> UUID:
        """A table that was opened and closed: two facts on the bus."""
        callers = Callers(self.bus)
        await callers.open_with_six()
        await close(callers)
        await self.published()
        return callers.table_id

    async def published(self) -> None:
        async def nothing_waits() -> bool:
            return await self.store.pending_facts(range(256), 10) == []

        await eventually(nothing_waits)

    async def check(self) -> dict[UUID, Finding]:
        return await self._reported(lambda heads, report: self.reconciliation.check(ALL, heads, report))

    async def rebuild(self) -> dict[UUID, Finding]:
        return await self._reported(self.reconciliation.rebuild)

    async def verdicts(self) -> dict[UUID, Verdict]:
        return {table: finding.verdict for table, finding in (await self.check()).items()}

    async def messages(self, table: UUID) -> list[tuple[int, bytes, str, str]]:
        """Position, payload, event id and previous hash of every fact of a table on the bus."""
        found = []
        info = await self.jetstream.stream_info("FACTS")
        for sequence in range(info.state.first_seq, info.state.last_seq + 1):
            try:
                message = await self.jetstream.get_msg("FACTS", sequence)
            except nats.js.errors.NotFoundError:
                continue
            if message.subject == subjects.fact(table):
                headers = message.headers or {}
                found.append((int(headers[POSITION]), message.data or b"", headers[EVENT_ID], headers[PREVIOUS_HASH]))
        return found

    async def delete(self, table: UUID, position: int) -> None:
        """Lose one message of a table."""
        info = await self.jetstream.stream_info("FACTS")
        for sequence in range(1, info.state.last_seq + 1):
            try:
                message = await self.jetstream.get_msg("FACTS", sequence)
            except nats.js.errors.NotFoundError:
                continue
            if message.subject == subjects.fact(table) and (message.headers or {})[POSITION] == str(position):
                await self.jetstream.delete_msg("FACTS", sequence)

    async def _reported(self, work: Callable[..., Any]) -> dict[UUID, Finding]:
        found: dict[UUID, Finding] = {}
        heads = await self.reconciliation.tables(ALL)
        await work(heads, lambda finding: found.update({finding.table_id: finding}))
        return found


async def close(callers: Callers) -> None:
    accepted(await callers.send("admin", house=engine.House(kind=engine.House.KIND_CLOSE, reason="late")))


@pytest.fixture
async def bench(nats_url: str) -> AsyncIterator[Bench]:
    store = MemoryEventStore()
    bus = await NatsBus.connect(NatsOptions((nats_url,)))
    replica = await start(store, bus)
    connection = await nats.connect(nats_url)
    yield Bench(replica, store, bus, connection.jetstream())
    await replica.stop()
    await bus.close()
    await connection.close()


async def test_a_bus_that_has_everything_is_whole(bench: Bench) -> None:
    table = await bench.closed()

    found = await bench.check()

    assert {finding.verdict for finding in found.values()} == {Verdict.WHOLE}
    assert found[table].in_log == found[table].on_bus == len(await bench.messages(table))


async def test_facts_told_again_are_the_very_same(bench: Bench) -> None:
    tables = [await bench.played(2), await bench.closed()]
    before = [await bench.messages(table) for table in tables]
    await bench.bus.forget_facts(subjects.FACTS)
    lost = await bench.verdicts()

    told = await bench.rebuild()

    assert set(lost.values()) == {Verdict.MISSING}
    assert [await bench.messages(table) for table in tables] == before
    assert {finding.verdict for finding in told.values()} == {Verdict.WHOLE}
    assert [told[table].told for table in tables] == [len(messages) for messages in before]
    assert set((await bench.verdicts()).values()) == {Verdict.WHOLE}


async def test_a_rebuild_of_a_whole_bus_tells_nothing(bench: Bench) -> None:
    table = await bench.closed()
    before = await bench.messages(table)

    for _ in range(2):
        found = await bench.rebuild()
        assert [finding.told for finding in found.values()] == [0]

    assert await bench.messages(table) == before


async def test_a_rebuild_goes_on_where_it_was_broken_off(bench: Bench) -> None:
    table = await bench.closed()
    before = await bench.messages(table)
    await bench.bus.forget_facts(subjects.FACTS)
    position, payload, event_id, previous_hash = before[0]
    await bench.bus.publish_fact(
        subjects.fact(table),
        payload,
        event_id=event_id,
        headers={POSITION: str(position), PREVIOUS_HASH: previous_hash},
    )

    found = await bench.rebuild()

    assert found[table].told == len(before) - 1
    assert await bench.messages(table) == before


async def test_two_rebuilds_at_once_tell_each_fact_once(bench: Bench) -> None:
    tables = [await bench.closed() for _ in range(2)]
    before = [await bench.messages(table) for table in tables]
    await bench.bus.forget_facts(subjects.FACTS)

    await asyncio.gather(bench.rebuild(), bench.rebuild(), bench.rebuild())

    assert [await bench.messages(table) for table in tables] == before


async def test_the_engine_goes_on_after_a_rebuild(bench: Bench) -> None:
    callers = Callers(bench.bus)
    await callers.open_with_six()
    await callers.all_ready()
    await bench.published()
    await bench.bus.forget_facts(subjects.FACTS)
    await bench.rebuild()

    await close(callers)
    await bench.published()

    assert await bench.verdicts() == {callers.table_id: Verdict.WHOLE}
    assert bench.replica.value("gouji_engine_outbox_parked_tables") == 0


async def test_consumers_count_nothing_twice(bench: Bench, ranking_pool: AsyncConnectionPool) -> None:
    intake = new_intake(ranking_pool, CollectorRegistry())
    taken: list[FactMessage] = []

    async def take(message: FactMessage) -> None:
        await intake.take(message)
        taken.append(message)

    await bench.played(2)
    consuming = await bench.bus.consume(subjects.FACTS, "ranking", take)
    total = sum((await bench.bus.count_facts(subjects.FACTS)).values())

    async def all_taken(times: int) -> None:
        async def come() -> bool:
            return len(taken) >= total * times

        await eventually(come, within=20)

    await all_taken(1)
    counted = await _standings(ranking_pool)
    await bench.bus.forget_facts(subjects.FACTS)
    await bench.rebuild()
    await all_taken(2)
    await consuming.stop()

    assert counted
    assert await _standings(ranking_pool) == counted
    assert await intake.parked() == []


async def _standings(pool: AsyncConnectionPool) -> list[Any]:
    async with pool.connection() as connection:
        rows = await connection.execute("select * from rating order by player_id")
        return await rows.fetchall()


async def test_tables_that_are_played_meanwhile_are_no_trouble(bench: Bench) -> None:
    async def open_and_close() -> None:
        for _ in range(40):
            callers = Callers(bench.bus)
            await callers.open_with_six()
            await close(callers)

    playing = asyncio.create_task(open_and_close())
    verdicts: set[Verdict] = set()
    while not playing.done():
        verdicts |= {finding.verdict for finding in (await bench.check()).values()}
        verdicts |= {finding.verdict for finding in (await bench.rebuild()).values()}
    await playing
    await bench.published()

    assert verdicts <= SOUND
    assert set((await bench.verdicts()).values()) == {Verdict.WHOLE}


# What differs


async def test_a_hole_in_the_middle_is_found_and_not_papered_over(bench: Bench) -> None:
    table = await bench.closed()
    await bench.delete(table, 1)

    assert await bench.verdicts() == {table: Verdict.HOLE}
    assert (await bench.rebuild())[table] == (table, Verdict.HOLE, 2, 2, 0)


async def test_lost_newest_facts_are_told_again(bench: Bench) -> None:
    table = await bench.closed()
    before = await bench.messages(table)
    await bench.delete(table, len(before))

    assert await bench.verdicts() == {table: Verdict.MISSING}


async def _publish(bench: Bench, table: UUID, position: int, event_id: str, previous_hash: str) -> None:
    headers = {POSITION: str(position), PREVIOUS_HASH: previous_hash}
    await bench.bus.publish_fact(subjects.fact(table), b"", event_id=event_id, headers=headers)


@pytest.mark.parametrize("what", ["event", "hash", "no position"])
async def test_a_fact_that_the_log_does_not_bear_out_is_a_fork(bench: Bench, what: str) -> None:
    table = await bench.closed()
    *_, (position, _, event_id, previous_hash) = await bench.messages(table)
    await bench.delete(table, position)
    if what == "no position":
        await bench.bus.publish_fact(subjects.fact(table), b"", event_id="foreign")
    else:
        other_id = f"{event_id}0" if what == "event" else f"{uuid7()}"
        await _publish(bench, table, position, other_id, "00" * 32 if what == "hash" else previous_hash)
    before = await bench.bus.count_facts(subjects.FACTS)

    assert await bench.verdicts() == {table: Verdict.FORK}
    assert (await bench.rebuild())[table].verdict is Verdict.FORK
    assert await bench.bus.count_facts(subjects.FACTS) == before


async def test_facts_beyond_the_log_and_tables_that_it_does_not_have_are_surplus(bench: Bench) -> None:
    table, stranger = await bench.closed(), uuid7()
    count = len(await bench.messages(table))
    await _publish(bench, table, count + 1, "beyond", "00" * 32)
    await _publish(bench, stranger, 1, "stranger", "00" * 32)

    found = await bench.check()

    assert {found[table].verdict, found[stranger].verdict} == {Verdict.SURPLUS}
    assert (found[table].in_log, found[table].on_bus) == (count, count + 1)
    assert (await bench.rebuild())[table].told == 0


async def test_what_waits_in_the_outbox_is_no_trouble(bench: Bench) -> None:
    table = await bench.closed()
    await bench.replica.stop()
    head = StreamHead(table, 1, b"", 1, closed=False, deadline=None)
    facts = await facts_in_log(bench.store, head, envelopes.facts)
    copy = await _copied(bench.store, table, closing=False)
    waiting = Reconciliation(copy, bench.bus, envelopes.facts)
    await bench.bus.forget_facts(subjects.FACTS)

    found: list[Finding] = []
    await waiting.check(ALL, await waiting.tables(ALL), found.append)

    assert [(finding.verdict, finding.in_log) for finding in found] == [(Verdict.WAITING, len(facts))]


async def _copied(store: MemoryEventStore, table: UUID, *, closing: bool) -> MemoryEventStore:
    """A store with the same log whose facts all wait."""
    copy = MemoryEventStore()
    events = await store.read(table)
    head = StreamHead(table, 1, b"", 1, closed=closing, deadline=None)
    facts = await facts_in_log(store, head, envelopes.facts)
    groups: dict[UUID, list[Any]] = {}
    for event in events:
        groups.setdefault(event.command_id, []).append(event)
    for command_id, group in groups.items():
        ids = {f"{table}:{event.version}" for event in group}
        outbox = tuple(fact.entry for fact in facts if fact.entry.event_id in ids)
        new = tuple(NewEvent(event.type, event.schema, event.payload) for event in group)
        first = group[0]
        await copy.append(
            Append(table, first.version - 1, 1, command_id, first.actor, first.at_ms, new, first.trace_id, outbox)
        )
    return copy


async def test_the_log_tells_the_facts_that_the_outbox_was_given(bench: Bench) -> None:
    table = await bench.played(2)
    copy = await _copied(bench.store, table, closing=True)
    pending = await copy.pending_facts(range(256), 100)

    facts = await facts_in_log(bench.store, await bench.store.head(table), envelopes.facts)

    assert [(fact.entry, fact.previous_hash) for fact in facts] == [(one.entry, one.previous_hash) for one in pending]


async def test_a_log_that_this_release_cannot_fold_is_told_and_others_are_mended(bench: Bench) -> None:
    broken, sound = await bench.closed(), await bench.closed()
    events = bench.store._streams[broken].events
    events[0] = events[0]._replace(schema=7)
    await bench.bus.forget_facts(subjects.FACTS)

    found = await bench.rebuild()

    assert {table: finding.verdict for table, finding in found.items()} == {
        broken: Verdict.UNREADABLE,
        sound: Verdict.WHOLE,
    }


async def test_a_table_that_left_the_database_is_not_told_from_it(bench: Bench) -> None:
    table = await bench.closed()
    bench.store._streams[table].events.clear()

    assert await bench.verdicts() == {table: Verdict.UNREADABLE}


async def test_subjects_are_counted_over_all_pages() -> None:
    subjects_held = {f"gouji.fact.{number}": number for number in range(1, 8)}

    async def request(subject: str, payload: bytes, timeout: float) -> SimpleNamespace:  # noqa: ASYNC109
        assert (subject, timeout > 0) == ("$JS.API.STREAM.INFO.FACTS", True)
        asked = json.loads(payload)
        page = dict(list(subjects_held.items())[asked["offset"] : asked["offset"] + 3])
        return SimpleNamespace(data=json.dumps({"total": 7, "state": {"subjects": page}}).encode())

    assert await counts(SimpleNamespace(request=request), "FACTS", "gouji.fact.>") == subjects_held  # type: ignore[arg-type]
