from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest
import structlog.testing
from prometheus_client import CollectorRegistry

from engine.runtime.clock import ManualClock
from engine.service.measures import Measures
from engine.service.room import Room
from engine.store.partitions import make_partitions
from engine.store.port import StoreUnavailable
from engine.store.postgres import PostgresEventStore

NOON = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp() * 1000)
DAY = timedelta(days=1)


class Calendar:
    """Says how many days ahead there are, and remembers for which day it was asked."""

    def __init__(self, days: int) -> None:
        self.days = days
        self.asked: list[date] = []

    async def days_ahead(self, today: date) -> int:
        self.asked.append(today)
        return self.days


def room(calendar: Calendar, registry: CollectorRegistry) -> Room:
    return Room(calendar.days_ahead, ManualClock(NOON), Measures(registry).partition_days_ahead)


@pytest.mark.parametrize(("days", "is_enough"), [(-1, False), (0, False), (1, True), (2, True), (14, True)])
async def test_an_engine_is_ready_while_today_and_tomorrow_have_room(days: int, *, is_enough: bool) -> None:
    registry, calendar = CollectorRegistry(), Calendar(days)

    assert await room(calendar, registry).is_enough() is is_enough

    assert registry.get_sample_value("gouji_engine_partition_days_ahead") == days
    assert calendar.asked == [date(2026, 11, 30)]


async def test_running_out_of_room_is_told_once_a_day_and_so_is_that_it_is_mended() -> None:
    calendar = Calendar(14)
    watched = room(calendar, CollectorRegistry())

    with structlog.testing.capture_logs() as told:
        for calendar.days in (14, 3, 2, 2, 1, 0, 0, -1, 14, 14):
            await watched.is_enough()

    assert [(line["log_level"], line["days_ahead"]) for line in told] == [
        ("warning", 2),
        ("warning", 1),
        ("error", 0),
        ("error", -1),
        ("info", 3),
    ]


async def test_a_store_that_does_not_answer_is_no_room() -> None:
    async def silent(_: date) -> int:
        raise StoreUnavailable

    with pytest.raises(StoreUnavailable):
        await Room(silent, ManualClock(), Measures(CollectorRegistry()).partition_days_ahead).is_enough()


async def test_room_is_that_of_the_partitions_in_the_database(database: str) -> None:
    today = datetime.now(UTC).date()
    store = await PostgresEventStore.open(database)
    registry = CollectorRegistry()
    watched = Room(store.partition_days_ahead, ManualClock(_noon(today)), Measures(registry).partition_days_ahead)
    assert await watched.is_enough()

    with psycopg.connect(database) as owner:
        owner.execute(f"drop table engine.event_{today + DAY:%Y%m%d}".encode())
    assert not await watched.is_enough()
    make_partitions(database, today)

    assert await watched.is_enough()
    assert registry.get_sample_value("gouji_engine_partition_days_ahead") == 14
    await store.close()


def _noon(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp() * 1000)
