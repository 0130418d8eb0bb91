"""Day partitions of the event table: made two weeks ahead by the owner of the schema, never by the engine.

Law: a partition holds the tables whose UUIDv7 ids were made on one day (UTC). There is no default partition: events
that landed there would stand in the way of the right one later. Nothing here may block an append.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

AHEAD = 14
"""Days after today that have a partition."""

_ONE_AT_A_TIME = "lock table engine.event in share update exclusive mode"
"""Locks out another maker of partitions, not readers and writers."""

_ATTACHED = """
select partition.relname
from pg_inherits join pg_class as partition on partition.oid = pg_inherits.inhrelid
where pg_inherits.inhparent = 'engine.event'::regclass
"""

_MAKE = "create table engine.{name} (like engine.event including defaults including constraints)"
_ATTACH = "alter table engine.event attach partition engine.{name} for values from ({first}) to ({after})"


async def make_partitions(dsn: str, today: date, ahead: int = AHEAD) -> tuple[date, ...]:
    """Make what is missing from yesterday (other clocks are behind) to so many days ahead; return the days made.

    Harmless when repeated or run twice at once. The user of `dsn` must own the schema.
    """
    days = [today + timedelta(days=offset) for offset in range(-1, ahead + 1)]
    async with await AsyncConnection.connect(dsn) as connection:
        await connection.execute(_ONE_AT_A_TIME)
        attached = await _attached(connection)
        missing = tuple(day for day in days if _name(day) not in attached)
        for day in missing:
            await _make(connection, day)
    return missing


async def days_ahead(dsn: str, today: date) -> int:
    """How many days after today have a partition without a gap; -1 when today has none and appends fail."""
    async with await AsyncConnection.connect(dsn) as connection:
        attached = await _attached(connection)
    ahead = -1
    while _name(today + timedelta(days=ahead + 1)) in attached:
        ahead += 1
    return ahead


def first_id(day: date) -> UUID:
    """The smallest UUIDv7 of a day: its first 48 bits are Unix milliseconds."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return UUID(int=int(midnight.timestamp()) * 1000 << 80)


async def _attached(connection: AsyncConnection[TupleRow]) -> frozenset[str]:
    cursor = await connection.execute(_ATTACHED)
    return frozenset(name for (name,) in await cursor.fetchall())


async def _make(connection: AsyncConnection[TupleRow], day: date) -> None:
    """Make the table on its own, then attach it: to make it in its place would lock the whole log."""
    names = {
        "name": sql.Identifier(_name(day)),
        "first": sql.Literal(str(first_id(day))),
        "after": sql.Literal(str(first_id(day + timedelta(days=1)))),
    }
    await connection.execute(sql.SQL(_MAKE).format(**names))
    await connection.execute(sql.SQL(_ATTACH).format(**names))


def _name(day: date) -> str:
    return f"event_{day:%Y%m%d}"
