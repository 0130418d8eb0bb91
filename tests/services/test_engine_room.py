from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest
import structlog.testing
from prometheus_client import CollectorRegistry

from engine.runtime.clock import ManualClock
from engine.service.measures import Measures
from engine.service.room import EVERY_S, Room
from engine.store.partitions import make_partitions
from engine.store.port import StoreUnavailable
from engine.store.postgres import PostgresEventStore

NOON = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp() * 1000)
DAY = timedelta(days=1)


class Calendar:
    """Says how many days ahead there are, and remembers for which day it was asked."""

    def __init__(self, days: int) -> None:
        self.days = days
        self.is_down = False
        self.asked: list[date] = []

    async def days_ahead(self, today: date) -> int:
        self.asked.append(today)
        if self.is_down:
            raise StoreUnavailable
        return self.days


def room(calendar: Calendar, registry: CollectorRegistry, clock: ManualClock | None = None) -> Room:
    return Room(calendar.days_ahead, clock or ManualClock(NOON), Measures(registry).partition_days_ahead)


@pytest.mark.parametrize(("days", "is_enough"), [(-1, False), (0, False), (1, True), (2, True), (14, True)])
async def test_an_engine_is_ready_while_today_and_tomorrow_have_room(days: int, *, is_enough: bool) -> None:
    registry, calendar = CollectorRegistry(), Calendar(days)

    assert await room(calendar, registry).is_enough() is is_enough

    assert registry.get_sample_value("gouji_engine_partition_days_ahead") == days
    assert calendar.asked == [date(2026, 11, 30)]


async def test_running_out_of_room_is_told_once_a_day_and_so_is_that_it_is_mended() -> None:
    calendar, clock = Calendar(14), ManualClock(NOON)
    watched = room(calendar, CollectorRegistry(), clock)

    with structlog.testing.capture_logs() as told:
        for calendar.days in (14, 3, 2, 2, 1, 0, 0, -1, 14, 14):
            await watched.is_enough()
            await clock.advance(EVERY_S)

    assert [(line["log_level"], line["days_ahead"]) for line in told] == [
        ("warning", 2),
        ("warning", 1),
        ("error", 0),
        ("error", -1),
        ("info", 3),
    ]


async def test_the_store_is_not_asked_all_the_time() -> None:
    calendar, clock = Calendar(14), ManualClock(NOON)
    watched = room(calendar, CollectorRegistry(), clock)

    for _ in range(30):
        await watched.is_enough()
        await clock.advance(1.0)

    assert len(calendar.asked) == 3


async def test_what_was_known_holds_while_the_store_is_out_of_reach() -> None:
    calendar, clock = Calendar(14), ManualClock(NOON)
    watched = room(calendar, CollectorRegistry(), clock)
    calendar.is_down = True
    assert not await watched.is_enough()
    await clock.advance(EVERY_S)
    calendar.is_down = False
    assert await watched.is_enough()
    await clock.advance(EVERY_S)

    calendar.is_down = True

    assert await watched.is_enough()


async def test_room_is_that_of_the_partitions_in_the_database(database: str) -> None:
    today = datetime.now(UTC).date()
    store = await PostgresEventStore.open(database)
    registry = CollectorRegistry()
    clock = ManualClock(_noon(today))
    watched = Room(store.partition_days_ahead, clock, Measures(registry).partition_days_ahead)
    assert await watched.is_enough()

    with psycopg.connect(database) as owner:
        owner.execute(f"drop table engine.event_{today + DAY:%Y%m%d}".encode())
    await clock.advance(EVERY_S)
    assert not await watched.is_enough()
    make_partitions(database, today)
    await clock.advance(EVERY_S)

    assert await watched.is_enough()
    assert registry.get_sample_value("gouji_engine_partition_days_ahead") == 14
    await store.close()


def _noon(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp() * 1000)
