"""Day partitions of the event table: made two weeks ahead by the owner of the schema, never by the engine.

Law: a partition holds the tables whose UUIDv7 ids were made on one day (UTC). There is no default partition: events
that landed there would stand in the way of the right one later. Nothing here may block an append.
"""

from __future__ import annotations

from collections.abc import Container
from datetime import UTC, date, datetime, timedelta
from typing import LiteralString
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

AHEAD = 14
"""Days after today that have a partition."""

_ONE_AT_A_TIME = "lock table engine.event in share update exclusive mode"
"""Locks out another maker of partitions, not readers and writers."""

ATTACHED: LiteralString = """
select partition.relname
from pg_inherits join pg_class as partition on partition.oid = pg_inherits.inhrelid
where pg_inherits.inhparent = 'engine.event'::regclass
"""
"""The names of the partitions that there are."""

_MAKE = "create table engine.{name} (like engine.event including defaults including constraints)"
_ATTACH = "alter table engine.event attach partition engine.{name} for values from ({first}) to ({before})"


def make_partitions(dsn: str, today: date, ahead: int = AHEAD) -> tuple[date, ...]:
    """Make what is missing from yesterday (other clocks are behind) to so many days ahead; return the days made.

    Harmless when repeated or run twice at once. The user of `dsn` must own the schema.
    """
    days = [today + timedelta(days=offset) for offset in range(-1, ahead + 1)]
    with psycopg.connect(dsn) as connection:
        connection.execute(_ONE_AT_A_TIME)
        attached = frozenset(name for (name,) in connection.execute(ATTACHED))
        missing = tuple(day for day in days if name_of(day) not in attached)
        for day in missing:
            _make(connection, day)
    return missing


def days_ahead(attached: Container[str], today: date) -> int:
    """How many days after today have a partition, without a gap; -1 when today has none and appends fail."""
    ahead = -1
    while name_of(today + timedelta(days=ahead + 1)) in attached:
        ahead += 1
    return ahead


def first_id(day: date) -> UUID:
    """The smallest UUIDv7 of a day: its first 48 bits are Unix milliseconds."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return UUID(int=int(midnight.timestamp()) * 1000 << 80)


def name_of(day: date) -> str:
    """The name of a day's partition."""
    return f"event_{day:%Y%m%d}"


def bounds(day: date) -> dict[str, UUID]:
    """The smallest table id of a day, and the smallest one of the day after."""
    return {"first": first_id(day), "before": first_id(day + timedelta(days=1))}


def attach(connection: psycopg.Connection[TupleRow], day: date) -> None:
    """Make the table of a day a partition of the log."""
    literals = {name: sql.Literal(str(table_id)) for name, table_id in bounds(day).items()}
    connection.execute(sql.SQL(_ATTACH).format(name=sql.Identifier(name_of(day)), **literals))


def _make(connection: psycopg.Connection[TupleRow], day: date) -> None:
    """Make the table on its own, then attach it: to make it in its place would lock the whole log."""
    connection.execute(sql.SQL(_MAKE).format(name=sql.Identifier(name_of(day))))
    attach(connection, day)
