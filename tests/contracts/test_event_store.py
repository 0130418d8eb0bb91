"""The promises of `engine/store/port.py` about streams, asked of every adapter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from engine.store.admission import MAX_BYTES, MAX_EVENTS
from engine.store.chain import first_break
from engine.store.port import (
    GENESIS,
    Append,
    Appended,
    Deadline,
    EventStore,
    NewEvent,
    NotTheLeader,
    StoreUnavailable,
    StreamNotFound,
    WrongVersion,
    shard_of,
)
from tests.support.adapters import opened_table
from tests.support.streams import append, event, fact, table_id

# Versions


async def test_versions_count_from_one_without_holes(store: EventStore) -> None:
    table = table_id()

    first = await store.append(append(table, 0, event(b"a"), event(b"b")))
    second = await store.append(append(table, 2, event(b"c"), event(b"d"), event(b"e")))

    assert (first.version, second.version) == (2, 5)
    assert [stored.version for stored in await store.read(table)] == [1, 2, 3, 4, 5]


async def test_an_event_comes_back_as_it_was_stored(store: EventStore) -> None:
    asked = append(table_id(), 0, event(bytes(range(256)), "deal_started"), event(b"", "hand_dealt"))

    answer = await store.append(asked)
    stored = await store.read(asked.table_id)

    assert [(one.type, one.schema, one.payload) for one in stored] == [
        (new.type, new.schema, new.payload) for new in asked.events
    ]
    for one in stored:
        assert (one.table_id, one.actor, one.command_id) == (asked.table_id, asked.actor, asked.command_id)
        assert (one.trace_id, one.at_ms) == (asked.trace_id, asked.at_ms)
    assert stored[-1].hash == answer.hash


async def test_an_append_that_expects_another_version_is_refused_and_stores_nothing(store: EventStore) -> None:
    table = await opened_table(store)

    for wrong in (0, 2, 7):
        with pytest.raises(WrongVersion):
            await store.append(append(table, wrong, outbox=(fact(1),)))

    assert (await store.head(table)).version == 1
    assert len(await store.read(table)) == 1
    assert not await store.pending_facts([shard_of(table)], 10)


async def test_a_stream_that_is_not_open_takes_nothing_but_its_first_event(store: EventStore) -> None:
    with pytest.raises(WrongVersion):
        await store.append(append(table_id(), 3))


@pytest.mark.parametrize("expected", [0, 1])
async def test_of_many_appends_that_expect_one_version_exactly_one_is_stored(store: EventStore, expected: int) -> None:
    table = table_id()
    if expected:
        await opened_table(store, table)

    answers = await asyncio.gather(
        *(store.append(append(table, expected, event(b"%d" % n))) for n in range(20)), return_exceptions=True
    )

    assert sum(isinstance(answer, Appended) for answer in answers) == 1
    assert sum(isinstance(answer, WrongVersion) for answer in answers) == 19
    assert len(await store.read(table)) == expected + 1


async def test_the_loser_of_a_race_succeeds_at_the_next_version(store: EventStore) -> None:
    table = await opened_table(store)
    mine, other = append(table, 1), append(table, 1)
    await store.append(other)
    with pytest.raises(WrongVersion):
        await store.append(mine)

    assert (await store.append(replace(mine, expected_version=2))).version == 3


async def test_many_tables_are_stored_side_by_side(store: EventStore) -> None:
    tables = [table_id() for _ in range(300)]

    opened = await asyncio.gather(*(store.append(append(table)) for table in tables))
    moved = await asyncio.gather(*(store.append(append(table, 1, event(), event())) for table in tables))

    assert {answer.version for answer in opened} == {1}
    assert {answer.version for answer in moved} == {3}
    for table in tables[::30]:
        assert first_break(await store.read(table)) is None


@pytest.mark.parametrize("count", [0, MAX_EVENTS + 1])
async def test_an_append_has_at_least_one_event_and_not_too_many(store: EventStore, count: int) -> None:
    nothing = replace(append(table_id()), events=(event(),) * count)

    with pytest.raises(ValueError, match="events"):
        await store.append(nothing)


async def test_a_payload_beyond_the_bound_is_refused(store: EventStore) -> None:
    with pytest.raises(ValueError, match="bytes"):
        await store.append(append(table_id(), 0, event(bytes(MAX_BYTES + 1))))


async def test_a_name_with_a_nul_is_refused(store: EventStore) -> None:
    with pytest.raises(ValueError, match="NUL"):
        await store.append(replace(append(table_id()), actor="a\0b"))


ODD: dict[str, Callable[[Append], Append]] = {
    "version": lambda given: replace(given, expected_version=1 << 63),
    "epoch": lambda given: replace(given, epoch=1 << 63),
    "negative epoch": lambda given: replace(given, epoch=-1),
    "time": lambda given: replace(given, at_ms=1 << 63),
    "deadline": lambda given: replace(given, deadline=Deadline(1 << 63, 1)),
    "negative deadline": lambda given: replace(given, deadline=Deadline(-1, 1)),
    "since version": lambda given: replace(given, deadline=Deadline(1, 1 << 63)),
    "schema": lambda given: replace(given, events=(NewEvent("set_laid", 1 << 31, b""),)),
    "position": lambda given: replace(given, outbox=(fact(1 << 63),)),
    "half a character": lambda given: replace(given, actor="\ud800"),
}


@pytest.mark.parametrize("odd", ODD)
async def test_what_fits_no_column_is_refused_and_disturbs_nobody(store: EventStore, odd: str) -> None:
    bystander = table_id()

    wrong, right = await asyncio.gather(
        store.append(ODD[odd](append(table_id()))), store.append(append(bystander)), return_exceptions=True
    )

    assert isinstance(wrong, ValueError)
    assert isinstance(right, Appended)
    assert (await store.append(append(bystander, 1))).version == 2


# Commands


async def test_a_command_sent_twice_is_stored_once_and_gets_its_first_answer(store: EventStore) -> None:
    table = await opened_table(store)
    asked = append(table, 1, event(), event())
    first = await store.append(asked)
    await store.append(append(table, 3))

    assert await store.append(asked) == first
    assert (await store.head(table)).version == 4


async def test_a_command_decided_again_at_a_later_version_gets_its_first_answer(store: EventStore) -> None:
    table = await opened_table(store)
    asked = append(table, 1)
    first = await store.append(asked)

    assert await store.append(replace(asked, expected_version=2, events=(event(b"other"),))) == first
    assert (await store.head(table)).version == 2


async def test_an_opening_command_sent_twice_gets_its_first_answer(store: EventStore) -> None:
    asked = append(table_id())

    assert await store.append(asked) == await store.append(asked)


async def test_a_command_sent_many_times_at_once_is_stored_once(store: EventStore) -> None:
    table = await opened_table(store)
    asked = append(table, 1)

    answers = await asyncio.gather(*(store.append(asked) for _ in range(10)))

    assert len(set(answers)) == 1
    assert (await store.head(table)).version == 2


async def test_a_command_is_known_by_table_and_id(store: EventStore) -> None:
    one, other = await opened_table(store), await opened_table(store)
    command = uuid4()

    await store.append(append(one, 1, command_id=command))
    answer = await store.append(append(other, 1, event(), event(), command_id=command))

    assert await store.find_command(other, command) == answer
    assert answer.version == 3


async def test_a_stored_command_is_found_with_its_answer_and_others_are_not(store: EventStore) -> None:
    table = await opened_table(store)
    asked = append(table, 1, event(), event(), event())
    answer = await store.append(asked)
    with pytest.raises(WrongVersion):
        await store.append(refused := append(table, 1))

    assert await store.find_command(table, asked.command_id) == answer
    assert await store.find_command(table, refused.command_id) is None
    assert await store.find_command(table_id(), asked.command_id) is None


async def test_a_command_is_answered_on_a_closed_stream_by_an_old_leader(store: EventStore) -> None:
    table = await opened_table(store)
    asked = append(table, 1)
    first = await store.append(asked)
    await store.claim(table, 9)
    await store.append(append(table, 2, epoch=9, closes=True))

    assert await store.append(asked) == first


# Epochs


async def test_a_claim_fences_the_leader_before(store: EventStore) -> None:
    table = await opened_table(store, epoch=3)

    head = await store.claim(table, 4)

    assert (head.epoch, head.version) == (4, 1)
    with pytest.raises(NotTheLeader):
        await store.append(append(table, 1, epoch=3))
    assert (await store.append(append(table, 1, epoch=4))).version == 2


async def test_an_append_of_a_newer_epoch_fences_the_older_one_too(store: EventStore) -> None:
    table = await opened_table(store, epoch=3)

    await store.append(append(table, 1, epoch=5))

    with pytest.raises(NotTheLeader):
        await store.append(append(table, 2, epoch=4))
    assert (await store.head(table)).epoch == 5


async def test_a_claim_by_an_older_epoch_is_refused_and_the_same_epoch_may_claim_again(store: EventStore) -> None:
    table = await opened_table(store, epoch=3)
    await store.claim(table, 4)

    with pytest.raises(NotTheLeader):
        await store.claim(table, 3)
    assert await store.claim(table, 4) == await store.head(table)


async def test_a_race_of_an_old_leader_with_a_claim_leaves_what_the_new_one_was_told(store: EventStore) -> None:
    table = await opened_table(store)
    old = asyncio.create_task(store.append(append(table, 1, event(b"old"))))

    head = await store.claim(table, 2)
    outcome = (await asyncio.gather(old, return_exceptions=True))[0]

    assert head.version == (2 if isinstance(outcome, Appended) else 1)
    assert (await store.append(append(table, head.version, epoch=2))).version == head.version + 1


async def test_a_closed_stream_takes_nothing_more(store: EventStore) -> None:
    table = await opened_table(store)
    await store.append(append(table, 1, closes=True))

    with pytest.raises(NotTheLeader):
        await store.append(append(table, 2, epoch=99))
    head = await store.head(table)
    assert (head.closed, head.version) == (True, 2)


# Reading


async def test_an_unknown_stream_is_not_found(store: EventStore) -> None:
    unknown = table_id()

    with pytest.raises(StreamNotFound):
        await store.head(unknown)
    with pytest.raises(StreamNotFound):
        await store.read(unknown)
    with pytest.raises(StreamNotFound):
        await store.claim(unknown, 1)
    assert await store.last_of_type(unknown, "set_laid") == 0


async def test_a_stream_is_read_in_pages(store: EventStore) -> None:
    table = table_id()
    await store.append(append(table, 0, *(event(b"%d" % n) for n in range(10))))

    assert [stored.version for stored in await store.read(table, limit=4)] == [1, 2, 3, 4]
    assert [stored.version for stored in await store.read(table, 4, 4)] == [5, 6, 7, 8]
    assert [stored.version for stored in await store.read(table, 8, 4)] == [9, 10]
    assert not await store.read(table, 10, 4)


async def test_the_newest_event_of_a_type_is_found(store: EventStore) -> None:
    table = table_id()
    started, laid = event(type_="deal_started"), event()
    await store.append(append(table, 0, started, laid, laid))
    await store.append(append(table, 3, laid, started, laid))

    assert await store.last_of_type(table, "deal_started") == 5
    assert await store.last_of_type(table, "set_laid") == 6
    assert await store.last_of_type(table, "match_ended") == 0


async def test_the_head_tells_where_the_stream_stands(store: EventStore) -> None:
    table = await opened_table(store, epoch=7)
    answer = await store.append(append(table, 1, epoch=7, deadline=Deadline(123_456, 2)))

    head = await store.head(table)

    assert (head.table_id, head.version, head.hash) == (table, 2, answer.hash)
    assert (head.epoch, head.closed, head.deadline) == (7, False, Deadline(123_456, 2))


async def test_open_streams_are_listed_newest_first_in_pages(store: EventStore) -> None:
    now = time.time_ns() // 1_000_000
    tables = [await opened_table(store, table_id(at_ms=now - age)) for age in range(6)]
    await store.append(append(tables[2], 1, closes=True))
    left = [table for table in tables if table != tables[2]]

    first = await store.list_streams(3)
    rest = await store.list_streams(10, before=first[-1].table_id)

    assert [head.table_id for head in first] == left[:3]
    assert [head.table_id for head in rest] == left[3:]


# Chain


async def test_hashes_chain_the_events_of_a_stream(store: EventStore) -> None:
    table = table_id()
    for version in range(0, 12, 3):
        await store.append(append(table, version, event(b"a"), event(b"b"), event(b"c")))

    stored = await store.read(table)

    assert first_break(stored) is None
    assert first_break(stored[4:], stored[3].hash, after_version=4) is None
    assert (await store.head(table)).hash == stored[-1].hash


@pytest.mark.parametrize(
    "change",
    [
        {"payload": b"other cards"},
        {"type": "set_passed"},
        {"schema": 2},
        {"actor": "player-2"},
        {"command_id": UUID(int=1)},
        {"trace_id": ""},
        {"at_ms": 1},
        {"version": 4},
        {"table_id": UUID(int=1)},
        {"hash": GENESIS},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_change_of_any_field_breaks_the_chain(store: EventStore, change: dict[str, object]) -> None:
    table = table_id()
    await store.append(append(table, 0, event(), event(), event(), event()))
    stored = list(await store.read(table))

    stored[2] = stored[2]._replace(**change)  # type: ignore[arg-type] # each case changes one field to its own type

    assert first_break(stored) == 3


# Deadlines


async def test_each_append_replaces_or_clears_the_deadline(store: EventStore) -> None:
    table = table_id()

    await store.append(append(table, 0, deadline=Deadline(1000, 1)))
    assert (await store.head(table)).deadline == Deadline(1000, 1)
    await store.append(append(table, 1, deadline=Deadline(2000, 2)))
    assert (await store.head(table)).deadline == Deadline(2000, 2)
    await store.append(append(table, 2))
    assert (await store.head(table)).deadline is None


async def test_a_refused_append_leaves_the_deadline(store: EventStore) -> None:
    table = table_id()
    await store.append(append(table, 0, deadline=Deadline(1000, 1)))

    with pytest.raises(WrongVersion):
        await store.append(append(table, 5, deadline=Deadline(9, 9)))

    assert (await store.head(table)).deadline == Deadline(1000, 1)


async def test_a_closed_stream_has_no_deadline(store: EventStore) -> None:
    table = await opened_table(store)

    await store.append(append(table, 1, deadline=Deadline(1000, 1), closes=True))

    assert not await store.next_deadlines([shard_of(table)], 10)


async def test_deadlines_of_some_shards_come_earliest_first(store: EventStore) -> None:
    late, early, none, elsewhere = table_id(1), table_id(2), table_id(1), table_id(3)
    await store.append(append(late, deadline=Deadline(3000, 1)))
    await store.append(append(early, deadline=Deadline(1000, 1)))
    await store.append(append(none))
    await store.append(append(elsewhere, deadline=Deadline(2000, 1)))

    assert [head.table_id for head in await store.next_deadlines([1, 2], 10)] == [early, late]
    assert [head.table_id for head in await store.next_deadlines([1, 2, 3], 2)] == [early, elsewhere]
    assert not await store.next_deadlines([], 10)


# Outbox


async def test_facts_wait_by_table_and_position_until_they_are_published(store: EventStore) -> None:
    one, other = sorted((table_id(1), table_id(2)))
    await store.append(append(other, 0, outbox=(fact(1),)))
    await store.append(append(one, 0, outbox=(fact(1), fact(2))))
    await store.append(append(one, 1, outbox=(fact(3),)))

    pending = await store.pending_facts([1, 2], 10)
    assert [(waiting.table_id, waiting.entry) for waiting in pending] == [
        (one, fact(1)),
        (one, fact(2)),
        (one, fact(3)),
        (other, fact(1)),
    ]
    await store.mark_published(one, 1)
    await store.mark_published(one, 1)
    assert [waiting.entry.position for waiting in await store.pending_facts([1, 2], 2)] == [2, 3]


async def test_a_fact_tells_the_version_of_its_event_and_the_hash_before_it(store: EventStore) -> None:
    table = await opened_table(store)
    await store.append(append(table, 1, outbox=(fact(1),)))
    await store.append(append(table, 2, event(), event(), outbox=(fact(2),)))
    stored = await store.read(table)

    first, second = await store.pending_facts([shard_of(table)], 10)

    assert (first.version, first.previous_hash) == (2, stored[0].hash)
    assert (second.version, second.previous_hash) == (4, stored[2].hash)


async def test_the_first_event_of_a_stream_follows_nothing(store: EventStore) -> None:
    table = table_id()
    await store.append(append(table, 0, outbox=(fact(1),)))

    assert (await store.pending_facts([shard_of(table)], 10))[0].previous_hash == GENESIS


async def test_facts_of_other_shards_are_not_told(store: EventStore) -> None:
    await store.append(append(table_id(5), 0, outbox=(fact(1),)))

    assert not await store.pending_facts([4, 6], 10)
    assert not await store.pending_facts([], 10)


async def test_facts_are_numbered_without_holes(store: EventStore) -> None:
    for positions in ((0,), (1, 3), (2, 1)):
        with pytest.raises(ValueError, match="numbered"):
            await store.append(append(table_id(), 0, outbox=tuple(map(fact, positions))))


async def test_a_position_that_still_waits_is_not_taken_twice(store: EventStore) -> None:
    table, bystander = table_id(8), table_id(8)
    await store.append(append(table, 0, outbox=(fact(1),)))

    wrong, right = await asyncio.gather(
        store.append(append(table, 1, outbox=(fact(1),))), store.append(append(bystander)), return_exceptions=True
    )

    assert isinstance(wrong, ValueError)
    assert isinstance(right, Appended)
    assert (await store.head(table)).version == 1


# Company


async def test_one_that_fails_does_not_fail_those_that_wait_with_it(store: EventStore) -> None:
    tables = [await opened_table(store, table_id(4)) for _ in range(6)]
    await store.claim(tables[1], 8)
    await store.append(append(tables[3], 1, closes=True))
    asked = [append(table, 1) for table in tables]
    asked[5] = append(tables[5], 17)

    answers = await asyncio.gather(*map(store.append, asked), return_exceptions=True)

    kinds = [type(answer) for answer in answers]
    assert kinds == [Appended, NotTheLeader, Appended, NotTheLeader, Appended, WrongVersion]


async def test_a_cancelled_caller_does_not_cancel_the_append(store: EventStore) -> None:
    table = await opened_table(store)
    asked = append(table, 1)
    caller = asyncio.create_task(store.append(asked))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller

    after = await store.append(append(table, 2))

    assert after.version == 3
    assert await store.find_command(table, asked.command_id)


async def test_cancelled_callers_do_not_harm_those_that_wait_with_them(store: EventStore) -> None:
    tables = [table_id(9) for _ in range(20)]
    callers = [asyncio.create_task(store.append(append(table))) for table in tables]
    await asyncio.sleep(0)
    for caller in callers[::2]:
        caller.cancel()

    answers = await asyncio.gather(*callers, return_exceptions=True)

    assert [isinstance(answer, Appended) for answer in answers] == [False, True] * 10
    for table in tables:
        await store.append(append(table, 1))
        assert (await store.head(table)).version == 2


async def test_a_closed_store_is_unavailable(store: EventStore) -> None:
    table = await opened_table(store)
    waiting = asyncio.create_task(store.append(append(table, 1)))
    await asyncio.sleep(0)

    await store.close()

    assert (await waiting).version == 2
    with pytest.raises(StoreUnavailable):
        await store.append(append(table, 2))
    with pytest.raises(StoreUnavailable):
        await store.head(table)
