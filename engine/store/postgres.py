"""The event store in Postgres.

Law: promises what the port says. Appends go through the group commit (`append.py`), everything else is one repeatable
statement (`sql.py`) on a pool (`sessions.py`). Transactions never span tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Self
from uuid import UUID

from engine.store import sql
from engine.store.admission import MAX_READ, check
from engine.store.append import GroupCommit, Terms
from engine.store.leases import ShardLeases
from engine.store.partitions import ATTACHED, days_ahead
from engine.store.port import (
    Append,
    Appended,
    Leases,
    NotTheLeader,
    PendingFact,
    StoredEvent,
    StoreUnavailable,
    StreamHead,
    StreamNotFound,
    shard_of,
)
from engine.store.rows import fact_of, head_of
from engine.store.sessions import Sessions

SCHEMA = "engine"
"""The Postgres schema that holds everything."""
MIGRATIONS = Path(__file__).parent / "migrations"
"""The folder of migration scripts for this schema."""
HEAD = "0001"
"""The migration that this code needs."""


class UnmigratedStore(Exception):
    """The database lacks the store's tables or their newest form: run the migrations before starting."""


class VolatileStore(Exception):
    """The database would forget what it has acknowledged: the message names the settings that are off."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Bounds of the connections for everything but appends: how many, and seconds a statement and a call may take."""

    size: int = 4
    statement_s: float = 5.0
    patience_s: float = 10.0


_LAST = UUID(int=(1 << 128) - 1)

TERMS = Terms()
POOL = Pool()


class PostgresEventStore:
    """The port's promises on tables. Made by `open`."""

    def __init__(self, sessions: Sessions, writer: GroupCommit) -> None:
        self._sessions = sessions
        self._writer = writer
        self._leases = ShardLeases(sessions)

    @classmethod
    async def open(cls, dsn: str, terms: Terms = TERMS, pool: Pool = POOL, *, must_last: bool = False) -> Self:
        """Connect. Raises `StoreUnavailable`, and `UnmigratedStore` when the migrations have not run.

        With `must_last` raises `VolatileStore` when a crash of the server could lose what it has acknowledged.
        """
        sessions = await Sessions(dsn, pool.size, pool.statement_s, pool.patience_s).open()
        try:
            await _check_migrated(sessions)
            if must_last:
                await _check_lasting(sessions)
        except (StoreUnavailable, UnmigratedStore, VolatileStore):
            await sessions.close()
            raise
        return cls(sessions, GroupCommit(dsn, terms))

    async def append(self, append: Append) -> Appended:
        """Store the events of one command; durable when it returns."""
        check(append)
        return await self._writer.submit(append)

    async def find_command(self, table_id: UUID, command_id: UUID) -> Appended | None:
        """The answer that this command got, if it was ever stored."""
        rows = await self._sessions.rows(sql.COMMAND, _key(table_id) | {"command_id": command_id})
        return Appended(*rows[0]) if rows else None

    async def head(self, table_id: UUID) -> StreamHead:
        """Where the stream stands."""
        rows = await self._sessions.rows(sql.HEAD, _key(table_id))
        if not rows:
            raise StreamNotFound(str(table_id))
        return self._seen(head_of(rows[0]))

    async def claim(self, table_id: UUID, epoch: int) -> StreamHead:
        """Write this epoch into the stream."""
        rows = await self._sessions.rows(sql.CLAIM, _key(table_id) | {"epoch": epoch})
        if not rows:
            newer = await self.head(table_id)
            raise NotTheLeader(f"epoch {epoch}, the stream has {newer.epoch}")
        return self._seen(head_of(rows[0]))

    async def read(self, table_id: UUID, after_version: int = 0, limit: int = MAX_READ) -> Sequence[StoredEvent]:
        """Events in version order after this version."""
        wanted = {"after_version": after_version, "limit": min(limit, MAX_READ)}
        rows = await self._sessions.rows(sql.READ, _key(table_id) | wanted)
        if not rows:
            await self.head(table_id)
        return [StoredEvent(*row) for row in rows]

    async def last_of_type(self, table_id: UUID, type_: str) -> int:
        """The version of the newest event of this type, 0 if there is none."""
        rows = await self._sessions.rows(sql.LAST_OF_TYPE, _key(table_id) | {"type": type_})
        return rows[0][0] if rows else 0

    async def list_streams(self, limit: int, before: UUID | None = None) -> Sequence[StreamHead]:
        """Streams that are not closed, newest table id first."""
        rows = await self._sessions.rows(sql.OPEN_STREAMS, {"before": before, "limit": min(limit, MAX_READ)})
        return [head_of(row) for row in rows]

    async def every_stream(self, first: UUID, limit: int) -> Sequence[StreamHead]:
        """Streams, open or closed, from this table id on, by table id: for operators."""
        wanted = {"first": first, "before": _LAST, "limit": min(limit, MAX_READ)}
        return [head_of(row) for row in await self._sessions.rows(sql.STREAMS_BETWEEN, wanted)]

    async def keep_leases(self, owner: str, want: int, ttl_ms: int) -> Leases:
        """Renew, let go of what is over the fair share, take free or expired shards up to it."""
        return await self._leases.keep(owner, want, ttl_ms)

    async def release_leases(self, owner: str) -> None:
        """Give up all shards of this owner at once."""
        await self._leases.release(owner)

    async def leader(self, shard: int) -> str | None:
        """Who leads this shard now, if anybody."""
        return await self._leases.leader(shard)

    async def next_deadlines(self, shards: Sequence[int], limit: int) -> Sequence[StreamHead]:
        """Streams of these shards that have a deadline, earliest first."""
        wanted = {"shards": list(shards), "limit": min(limit, MAX_READ)}
        return [head_of(row) for row in await self._sessions.rows(sql.DEADLINES, wanted)]

    async def pending_facts(self, shards: Sequence[int], limit: int) -> Sequence[PendingFact]:
        """Outbox rows of these shards that are not published, by table and position."""
        wanted = {"shards": list(shards), "limit": min(limit, MAX_READ)}
        return [fact_of(row) for row in await self._sessions.rows(sql.PENDING, wanted)]

    async def mark_published(self, table_id: UUID, position: int) -> None:
        """Forget an outbox row."""
        await self._sessions.rows(sql.PUBLISHED, _key(table_id) | {"position": position})

    async def partition_days_ahead(self, today: date) -> int:
        """How many days after today have a partition; -1 when today has none and no table can be opened."""
        return days_ahead({name for (name,) in await self._sessions.rows(ATTACHED)}, today)

    async def close(self) -> None:
        """Store what is waiting, then let go of every connection."""
        await self._writer.close()
        await self._sessions.close()

    def _seen(self, head: StreamHead) -> StreamHead:
        self._writer.heads.put(head.table_id, Appended(head.version, head.hash))
        return head


def _key(table_id: UUID) -> dict[str, object]:
    return {"shard": shard_of(table_id), "table_id": table_id}


async def _check_migrated(sessions: Sessions) -> None:
    """Refuse a schema that is missing or older than this code; a newer one is a release on its way in."""
    [(table,)] = await sessions.rows(sql.VERSION_TABLE)
    versions = await sessions.rows(sql.MIGRATED) if table else []
    if max((version for (version,) in versions), default="") < HEAD:
        raise UnmigratedStore(f"migration {HEAD} is needed")


async def _check_lasting(sessions: Sessions) -> None:
    """Refuse a server that may lose what it has acknowledged."""
    if off := await sessions.rows(sql.FORGETFUL):
        raise VolatileStore(", ".join(name for (name,) in off))
