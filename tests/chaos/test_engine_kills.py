import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from uuid import UUID, uuid4

import pytest
from gouji.engine.v1 import facts_pb2
from gouji.game.v1 import view_pb2

from engine.runtime import subjects
from engine.runtime.bus import Bus, FactMessage
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.store.chain import first_break
from engine.store.postgres import PostgresEventStore
from tests.support.engine_bench import AUDIENCES, PLAYERS, Callers, forms
from tests.support.engine_site import EngineSite

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
async def bus(site: EngineSite) -> AsyncIterator[Bus]:
    bus = await NatsBus.connect(NatsOptions((site.nats.url(),)))
    yield bus
    await bus.close()


async def table(bus: Bus) -> Callers:
    """A table whose first deal is running."""
    callers = Callers(bus, patience_s=60)
    await callers.watch()
    await callers.open_with_six()
    await callers.all_ready()
    return callers


async def play_through(tables: list[Callers], trouble: Callable[[], None], pause_s: float) -> None:
    """Play all tables to their end, with trouble in the middle."""
    playing = [asyncio.create_task(callers.play()) for callers in tables]
    await asyncio.sleep(pause_s)
    assert not all(task.done() for task in playing)
    await asyncio.to_thread(trouble)
    await asyncio.gather(*playing)


async def check(site: EngineSite, callers: Callers) -> None:
    """Nothing acknowledged is missing, nothing was shown that is not stored, and the log is whole."""
    store = await PostgresEventStore.open(site.dsn)
    try:
        events = await store.read(callers.table_id)
        assert [event.version for event in events] == list(range(1, len(events) + 1))
        assert first_break(events) is None
        stored: dict[UUID, int] = {event.command_id: event.version for event in events}
        assert callers.acknowledged.items() <= stored.items()
    finally:
        await store.close()
    for audience in AUDIENCES:
        player = PLAYERS[int(audience[-1])] if audience != "public" else "nobody"
        truth: dict[int, bytes] = {}
        while not truth or max(truth) < len(events):
            history = await callers.history(player, max(truth, default=0))
            truth |= {one.version: one.SerializeToString(deterministic=True) for one in history.events}
        assert forms(callers.shown[audience]).items() <= truth.items()
    assert await callers.is_in(view_pb2.TABLE_PHASE_FINISHED)
    await check_facts(callers)
    assert not site.outcry()


async def check_facts(callers: Callers) -> None:
    """Every fact of the table is on the bus once, in order."""
    positions: list[int] = []
    last = asyncio.Event()

    async def note(message: FactMessage) -> None:
        fact = facts_pb2.Fact.FromString(message.payload)
        positions.append(fact.position)
        if fact.HasField("match_finished"):
            last.set()

    subscription = await callers.bus.consume(subjects.fact(callers.table_id), uuid4().hex, note)
    async with asyncio.timeout(20):
        await last.wait()
    await asyncio.sleep(0.1)
    await subscription.stop()
    assert positions == list(range(1, len(positions) + 1))


async def test_an_engine_killed_in_the_middle_of_a_deal_loses_nothing(site: EngineSite, bus: Bus) -> None:
    first = site.engine()
    tables = [await table(bus) for _ in range(3)]

    def trouble() -> None:
        first.kill()
        site.engine()

    await play_through(tables, trouble, 1.0)
    for callers in tables:
        await check(site, callers)


async def test_of_two_engines_the_other_takes_over_the_tables_of_the_one_that_is_killed(
    site: EngineSite, bus: Bus
) -> None:
    first, _ = site.engine(), site.engine()
    tables = [await table(bus) for _ in range(4)]

    await play_through(tables, first.kill, 1.0)
    for callers in tables:
        await check(site, callers)


async def test_an_engine_paused_beyond_its_lease_does_no_harm_when_it_wakes(site: EngineSite, bus: Bus) -> None:
    first = site.engine()
    tables = [await table(bus) for _ in range(3)]

    def trouble() -> None:
        os.kill(first.pid, signal.SIGSTOP)
        site.engine()

    try:
        await play_through(tables, trouble, 0.5)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    await asyncio.sleep(1.0)
    for callers in tables:
        await check(site, callers)


async def test_postgres_killed_in_the_middle_of_a_deal_loses_nothing(site: EngineSite, bus: Bus) -> None:
    site.engine()
    tables = [await table(bus) for _ in range(3)]

    def trouble() -> None:
        site.postgres.kill()
        site.postgres.start()

    await play_through(tables, trouble, 1.0)
    for callers in tables:
        await check(site, callers)


async def test_a_failover_to_the_standby_in_the_middle_of_a_deal_loses_nothing(site: EngineSite, bus: Bus) -> None:
    await asyncio.to_thread(site.add_standby)
    site.engine()
    tables = [await table(bus) for _ in range(3)]

    await play_through(tables, site.fail_over, 1.0)
    for callers in tables:
        await check(site, callers)


async def test_nats_killed_in_the_middle_of_a_deal_loses_nothing(site: EngineSite, bus: Bus) -> None:
    site.engine()
    tables = [await table(bus) for _ in range(3)]

    def trouble() -> None:
        site.nats.kill()
        site.nats.start()

    await play_through(tables, trouble, 1.0)
    for callers in tables:
        await check(site, callers)


async def test_an_engine_told_to_stop_hands_over_within_its_grace(site: EngineSite, bus: Bus) -> None:
    first, _ = site.engine(), site.engine()
    tables = [await table(bus) for _ in range(4)]

    await play_through(tables, lambda: first.stop(grace_s=10), 0.5)

    assert first.exit_code() == 0
    for callers in tables:
        await check(site, callers)
