"""A store that breaks when a test says so, around one that works.

Law: every promise is the inner store's; what breaks is what the test has put into `troubles` for an append, in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from engine.store.port import (
    Append,
    Appended,
    EventStore,
    Leases,
    OutcomeUnknown,
    PendingFact,
    StoredEvent,
    StoreUnavailable,
    StreamHead,
)

Trouble = Callable[[EventStore, Append], Awaitable[Appended]]


async def unreachable(store: EventStore, append: Append) -> Appended:
    """Nothing is stored, and the caller knows."""
    del store, append
    raise StoreUnavailable


async def lost_before(store: EventStore, append: Append) -> Appended:
    """The connection breaks before anything is stored."""
    del store, append
    raise OutcomeUnknown


async def lost_after(store: EventStore, append: Append) -> Appended:
    """The connection breaks after everything is stored."""
    await store.append(append)
    raise OutcomeUnknown


async def fine(store: EventStore, append: Append) -> Appended:
    """No trouble this time."""
    return await store.append(append)


async def slow(store: EventStore, append: Append) -> Appended:
    """It takes its time."""
    await asyncio.sleep(0.3)
    return await store.append(append)


async def hanging(store: EventStore, append: Append) -> Appended:
    """Nothing comes back."""
    del store, append
    await asyncio.Event().wait()
    raise AssertionError


class FaultyStore:
    """An event store with troubles. `is_down`: everything is out of reach."""

    def __init__(self, inner: EventStore) -> None:
        self.inner = inner
        self.troubles: list[Trouble] = []
        self.appends: list[Append] = []
        self.is_down = False

    async def append(self, append: Append) -> Appended:
        self._check()
        self.appends.append(append)
        if self.troubles:
            return await self.troubles.pop(0)(self.inner, append)
        return await self.inner.append(append)

    async def find_command(self, table_id: UUID, command_id: UUID) -> Appended | None:
        self._check()
        return await self.inner.find_command(table_id, command_id)

    async def head(self, table_id: UUID) -> StreamHead:
        self._check()
        return await self.inner.head(table_id)

    async def claim(self, table_id: UUID, epoch: int) -> StreamHead:
        self._check()
        return await self.inner.claim(table_id, epoch)

    async def read(self, table_id: UUID, after_version: int = 0, limit: int = 5000) -> Sequence[StoredEvent]:
        self._check()
        return await self.inner.read(table_id, after_version, limit)

    async def last_of_type(self, table_id: UUID, type_: str) -> int:
        self._check()
        return await self.inner.last_of_type(table_id, type_)

    async def list_streams(self, limit: int, before: UUID | None = None) -> Sequence[StreamHead]:
        self._check()
        return await self.inner.list_streams(limit, before)

    async def keep_leases(self, owner: str, want: int, ttl_ms: int) -> Leases:
        self._check()
        return await self.inner.keep_leases(owner, want, ttl_ms)

    async def release_leases(self, owner: str) -> None:
        self._check()
        await self.inner.release_leases(owner)

    async def leader(self, shard: int) -> str | None:
        self._check()
        return await self.inner.leader(shard)

    async def next_deadlines(self, shards: Sequence[int], limit: int) -> Sequence[StreamHead]:
        self._check()
        return await self.inner.next_deadlines(shards, limit)

    async def pending_facts(self, shards: Sequence[int], limit: int) -> Sequence[PendingFact]:
        self._check()
        return await self.inner.pending_facts(shards, limit)

    async def mark_published(self, table_id: UUID, position: int) -> None:
        self._check()
        await self.inner.mark_published(table_id, position)

    async def close(self) -> None:
        await self.inner.close()

    def _check(self) -> None:
        if self.is_down:
            raise StoreUnavailable
