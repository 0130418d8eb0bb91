"""How waiting appends are shared out to the lanes: what the line and the turnstile promise, without a database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from engine.store import line as line_module
from engine.store.line import FEW, LINGER_S, Batch, Line, Turnstile
from engine.store.port import Appended, StoreUnavailable
from tests.support.streams import append, table_id

MANY = 3 * FEW
ANSWER = Appended(1, bytes(32))


@pytest.fixture
def nobody_lingers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let those who wait have more patience than a busy machine could use up."""
    monkeypatch.setattr(line_module, "LINGER_S", 60.0)


def line(lanes: int = 2, batch: int = 500, bound: int = 1000) -> Line:
    return Line(lanes, batch, bound)


def queue(line: Line, number: int) -> list[asyncio.Future[Appended]]:
    return [line.submit(append(table_id())) for _ in range(number)]


async def taken(line: Line) -> Batch:
    batch = await asyncio.wait_for(line.next_batch(), 5)
    assert batch is not None
    return batch


async def nobody_sets_out(line: Line) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(line.next_batch(), 0.001)


def sizes(batches: Sequence[Batch]) -> list[int]:
    return [len(batch.entries) for batch in batches]


async def test_few_appends_share_one_statement() -> None:
    waiting = line()
    queue(waiting, FEW)

    assert sizes([await taken(waiting)]) == [FEW]


async def test_many_appends_are_split_over_the_lanes() -> None:
    waiting = line()
    queue(waiting, MANY)

    assert sizes([await taken(waiting), await taken(waiting)]) == [MANY // 2, MANY // 2]


async def test_a_batch_is_bounded() -> None:
    waiting = line(batch=10)
    queue(waiting, MANY)

    assert sizes([await taken(waiting), await taken(waiting)]) == [10, 10]


async def test_a_batch_is_in_the_order_of_its_table_ids() -> None:
    waiting = line()
    queue(waiting, FEW)

    tables = [entry.append.table_id for entry in (await taken(waiting)).entries]
    assert tables == sorted(tables)


async def test_a_tables_second_append_waits_for_its_first() -> None:
    waiting, table = line(), table_id()
    for version in range(2):
        waiting.submit(append(table, version))

    first = await taken(waiting)
    await asyncio.sleep(2 * LINGER_S)
    await nobody_sets_out(waiting)
    waiting.release(first)
    second = await taken(waiting)

    assert [batch.entries[0].append.expected_version for batch in (first, second)] == [0, 1]


async def test_appends_behind_a_tables_second_one_do_not_wait_for_its_first() -> None:
    waiting, table = line(), table_id()
    waiting.submit(append(table))
    await taken(waiting)
    waiting.submit(append(table, 1))
    (other,) = queue(waiting, 1)
    await asyncio.sleep(2 * LINGER_S)

    assert [entry.answer for entry in (await taken(waiting)).entries] == [other]


@pytest.mark.usefixtures("nobody_lingers")
async def test_few_appends_let_those_that_are_under_way_come_back_first() -> None:
    waiting = line()
    queue(waiting, 2)
    first = await taken(waiting)
    queue(waiting, 1)

    await nobody_sets_out(waiting)
    waiting.release(first)

    assert sizes([await taken(waiting)]) == [1]


async def test_appends_set_out_when_those_that_are_under_way_take_their_time() -> None:
    waiting = line()
    queue(waiting, 2)
    await taken(waiting)
    queue(waiting, 1)

    assert sizes([await taken(waiting)]) == [1]


async def test_appends_that_came_while_all_lanes_were_busy_do_not_wait_for_the_slow_one() -> None:
    waiting = line()
    queue(waiting, MANY)
    first, _ = await taken(waiting), await taken(waiting)
    queue(waiting, 1)
    waiting.release(first)

    assert sizes([await taken(waiting)]) == [1]


async def test_the_lane_that_was_busy_last_is_called_first() -> None:
    waiting = line()
    lanes = [asyncio.create_task(waiting.next_batch()) for _ in range(2)]
    await asyncio.sleep(0)
    queue(waiting, 1)

    done, idle = await asyncio.wait(lanes, return_when=asyncio.FIRST_COMPLETED)

    assert (done, idle) == ({lanes[1]}, {lanes[0]})
    waiting.close()
    assert await lanes[0] is None


async def test_a_line_that_is_full_says_so_and_loses_nobody() -> None:
    waiting = line(bound=3)
    queue(waiting, 3)

    with pytest.raises(StoreUnavailable, match="too many"):
        queue(waiting, 1)

    assert sizes([await taken(waiting)]) == [3]


async def test_a_closed_line_takes_nothing_in_and_lets_all_lanes_go_when_it_is_empty() -> None:
    waiting = line()
    queue(waiting, 2)
    first = await taken(waiting)
    queue(waiting, 1)
    waiting.close()

    with pytest.raises(StoreUnavailable, match="closed"):
        queue(waiting, 1)
    lanes = [asyncio.create_task(waiting.next_batch()) for _ in range(2)]
    await asyncio.sleep(0)
    waiting.release(first)
    last = {await lane for lane in lanes}

    assert sorted(len(batch.entries) if batch else 0 for batch in last) == [0, 1]


async def test_when_nothing_has_come_through_all_who_wait_are_given_up_with_the_batch() -> None:
    waiting = line()
    (answer,) = queue(waiting, 1)

    waiting.give_up(asyncio.get_running_loop().time(), ConnectionError())

    with pytest.raises(StoreUnavailable):
        await answer


async def test_when_another_lane_has_come_through_those_who_wait_have_their_turn() -> None:
    waiting = line()
    queue(waiting, 1)
    since = asyncio.get_running_loop().time()
    await asyncio.sleep(LINGER_S)
    waiting.came_through()

    waiting.give_up(since, ConnectionError())

    assert sizes([await taken(waiting)]) == [1]


async def test_who_went_away_is_still_stored() -> None:
    waiting = line()
    gone, there = queue(waiting, 2)
    gone.cancel()

    batch = await taken(waiting)
    for entry in batch.unanswered():
        entry.accept(ANSWER)

    assert len(batch.entries) == 2
    assert await there == ANSWER


@pytest.mark.usefixtures("nobody_lingers")
async def test_statements_take_turns_at_the_server() -> None:
    turnstile, order = Turnstile(), list[str]()

    async def pass_through(name: str) -> None:
        assert await turnstile.enter()
        order.append(f"{name} in")
        await asyncio.sleep(0.001)
        order.append(f"{name} out")
        await turnstile.leave()

    await asyncio.gather(pass_through("first"), pass_through("second"))

    assert order == ["first in", "first out", "second in", "second out"]


async def test_a_statement_that_takes_its_time_is_passed_and_its_turn_stays_its_own() -> None:
    turnstile = Turnstile()
    assert await turnstile.enter()

    assert not await turnstile.enter()

    await turnstile.leave()
    assert await turnstile.enter()
