"""The gate before a consumer of facts: of each source, message `last + 1` takes effect, once, and no other.

Law: a consumer embeds `INBOX` and `FORKS` in its own schema's migrations and calls `admit` in the very transaction that
makes the fact's effect. `judge` is the pure law; the SQL only keeps the position, and the hash that the newest fact's
publisher names as the one before: the same position with another hash means that the source's log is not the one it was.
From then on nothing of that source takes effect. Knows no bus and no fact.
"""

from __future__ import annotations

from dataclasses import dataclass
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

FORKS = """
alter table inbox
    add column previous_hash text not null default '',
    add column forked boolean not null default false;
"""
"""What `INBOX` lacks to notice forks, for a migration script of the consumer's schema."""

PREVIOUS_HASH = "Gouji-Previous-Hash"
"""Header: hex hash of the event before the fact's own in its log."""

_SEED = "insert into inbox (source, last) values (%s, 0) on conflict (source) do nothing"
_LAST = "select last, previous_hash, forked from inbox where source = %s for update"
_ADVANCE = "update inbox set last = %s, previous_hash = %s where source = %s"
_NOTE_FORK = "update inbox set forked = true where source = %s"


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


class Fork(Exception):
    """The source's log was replaced by another one: let nothing more of it take effect until somebody has looked."""

    def __init__(self, source: str, position: int) -> None:
        super().__init__(f"{source}: fork seen at {position}")
        self.source = source
        self.position = position


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a consumer is with a source; `previous_hash` is that of fact `last`, empty when nobody told."""

    last: int = 0
    previous_hash: str = ""
    forked: bool = False


def judge(source: str, seen: Seen, position: int, previous_hash: str = "") -> Verdict:
    """Say what the message at `position` is to one who has seen so much. Raises `Hole`, `Fork`."""
    if position == seen.last and previous_hash and seen.previous_hash not in ("", previous_hash):
        raise Fork(source, position)
    if position <= seen.last:
        return Verdict.DUPLICATE
    if seen.forked:
        raise Fork(source, position)
    if position == seen.last + 1:
        return Verdict.APPLY
    raise Hole(source, seen.last, position)


async def admit(connection: AsyncConnection[TupleRow], source: str, position: int, previous_hash: str = "") -> Verdict:
    """Judge a fact and move the position, inside the caller's transaction; others of this source wait for its end.

    Raises `Hole`, `Fork`. Whatever the caller raises afterwards undoes the move as well.
    """
    await connection.execute(_SEED, (source,))
    cursor = await connection.execute(_LAST, (source,))
    row = await cursor.fetchone()
    verdict = judge(source, Seen(*row) if row else Seen(), position, previous_hash)
    if verdict is Verdict.APPLY:
        await connection.execute(_ADVANCE, (position, previous_hash, source))
    return verdict


async def note_fork(connection: AsyncConnection[TupleRow], source: str) -> None:
    """Let nothing more of this source take effect."""
    await connection.execute(_NOTE_FORK, (source,))
