"""The gate before a consumer of facts: of each source, message `last + 1` takes effect, once, and no other.

Law: a consumer embeds `INBOX` in its own schema's migrations and calls `admit` in the very transaction that makes the
fact's effect. `judge` is the pure law; the SQL only keeps the position. Knows no bus and no fact.
"""

from __future__ import annotations

from enum import Enum, auto

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

INBOX = """
create table inbox (
    source text primary key,
    last bigint not null
);
"""
"""The table of positions, for a migration script of the consumer's schema. `source` is a table's id, say."""

_SEED = "insert into inbox (source, last) values (%s, 0) on conflict (source) do nothing"
_LAST = "select last from inbox where source = %s for update"
_ADVANCE = "update inbox set last = %s where source = %s"


class Verdict(Enum):
    """What to do with a fact."""

    APPLY = auto()
    """It is the next one: make its effect now, in this transaction."""
    DUPLICATE = auto()
    """It took effect before: acknowledge and forget it."""


class Hole(Exception):
    """Facts before this one are missing: do not acknowledge, it comes again when they have come."""

    def __init__(self, source: str, last: int, position: int) -> None:
        super().__init__(f"{source}: {position} after {last}")
        self.source = source
        self.last = last
        self.position = position


def judge(source: str, last: int, position: int) -> Verdict:
    """Say what the message at `position` is to one who has seen everything up to `last`. Raises `Hole`."""
    if position <= last:
        return Verdict.DUPLICATE
    if position == last + 1:
        return Verdict.APPLY
    raise Hole(source, last, position)


async def admit(connection: AsyncConnection[TupleRow], source: str, position: int) -> Verdict:
    """Judge a fact and move the position, inside the caller's transaction; others of this source wait for its end.

    Raises `Hole`. Whatever the caller raises afterwards undoes the move as well.
    """
    await connection.execute(_SEED, (source,))
    cursor = await connection.execute(_LAST, (source,))
    row = await cursor.fetchone()
    verdict = judge(source, row[0] if row else 0, position)
    if verdict is Verdict.APPLY:
        await connection.execute(_ADVANCE, (position, source))
    return verdict
