"""A process that dies at a chosen moment: from then on nothing that it does is done, and nothing comes back to it.

Law: a process touches the world by its store and its bus alone. So to stop it before each of its effects, one after the
other, is to kill it at every await of its. Reading is no effect, nor are leases and echoes, which come by the clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from uuid import UUID

from engine.runtime.bus import (
    Bus,
    FactHandler,
    FactMessage,
    Message,
    MessageHandler,
    RequestHandler,
    Subscription,
)
from engine.store.port import (
    Append,
    Appended,
    EventStore,
    Leases,
    PendingFact,
    StoredEvent,
    StreamHead,
)


class Life:
    """How many effects a process has left; without a number it does not die."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.died = asyncio.Event()
        self._buried = asyncio.Event()

    async def breathe(self) -> None:
        """Pass while there is life in it."""
        if self.died.is_set():
            await self._buried.wait()
            raise asyncio.CancelledError

    async def act(self) -> None:
        """Pass before an effect, or die."""
        if self.left == 0:
            self.died.set()
        await self.breathe()
        if self.left is not None:
            self.left -= 1

    def bury(self) -> None:
        """End what still waits in a dead process."""
        self._buried.set()


class MortalStore:
    """The event store as a mortal process reaches it."""

    def __init__(self, inner: EventStore, life: Life) -> None:
        self._inner = inner
        self._life = life

    async def append(self, append: Append) -> Appended:
        await self._life.act()
        return await self._inner.append(append)

    async def find_command(self, table_id: UUID, command_id: UUID) -> Appended | None:
        await self._life.breathe()
        return await self._inner.find_command(table_id, command_id)

    async def head(self, table_id: UUID) -> StreamHead:
        await self._life.breathe()
        return await self._inner.head(table_id)

    async def claim(self, table_id: UUID, epoch: int) -> StreamHead:
        await self._life.act()
        return await self._inner.claim(table_id, epoch)

    async def read(self, table_id: UUID, after_version: int = 0, limit: int = 5000) -> Sequence[StoredEvent]:
        await self._life.breathe()
        return await self._inner.read(table_id, after_version, limit)

    async def last_of_type(self, table_id: UUID, type_: str) -> int:
        await self._life.breathe()
        return await self._inner.last_of_type(table_id, type_)

    async def list_streams(self, limit: int, before: UUID | None = None) -> Sequence[StreamHead]:
        await self._life.breathe()
        return await self._inner.list_streams(limit, before)

    async def keep_leases(self, owner: str, want: int, ttl_ms: int) -> Leases:
        await self._life.breathe()
        return await self._inner.keep_leases(owner, want, ttl_ms)

    async def release_leases(self, owner: str) -> None:
        await self._life.breathe()
        await self._inner.release_leases(owner)

    async def leader(self, shard: int) -> str | None:
        await self._life.breathe()
        return await self._inner.leader(shard)

    async def next_deadlines(self, shards: Sequence[int], limit: int) -> Sequence[StreamHead]:
        await self._life.breathe()
        return await self._inner.next_deadlines(shards, limit)

    async def pending_facts(self, shards: Sequence[int], limit: int) -> Sequence[PendingFact]:
        await self._life.breathe()
        return await self._inner.pending_facts(shards, limit)

    async def mark_published(self, table_id: UUID, position: int) -> None:
        await self._life.act()
        await self._inner.mark_published(table_id, position)

    async def close(self) -> None:
        """The store outlives the process."""


class MortalBus:
    """The bus as a mortal process reaches it; to answer a request is an effect too."""

    def __init__(self, inner: Bus, life: Life) -> None:
        self._inner = inner
        self._life = life

    async def request(
        self,
        subject: str,
        payload: bytes,
        *,
        timeout: float,  # noqa: ASYNC109 - the port's
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        await self._life.breathe()
        return await self._inner.request(subject, payload, timeout=timeout, headers=headers)

    async def serve(self, subject: str, handler: RequestHandler, *, in_flight: int = 1024) -> Subscription:
        async def answer(message: Message) -> bytes:
            await self._life.breathe()
            reply = await handler(message)
            await self._life.act()
            return reply

        return await self._inner.serve(subject, answer, in_flight=in_flight)

    async def publish(self, subject: str, payload: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        await (self._life.act() if subject.startswith("gouji.live.") else self._life.breathe())
        await self._inner.publish(subject, payload, headers=headers)

    async def subscribe(self, subject: str, handler: MessageHandler, *, pending: int = 4096) -> Subscription:
        return await self._inner.subscribe(subject, handler, pending=pending)

    async def publish_fact(
        self,
        subject: str,
        payload: bytes,
        *,
        event_id: str,
        expected_sequence: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        await self._life.act()
        return await self._inner.publish_fact(
            subject, payload, event_id=event_id, expected_sequence=expected_sequence, headers=headers
        )

    async def last_fact(self, subject: str) -> FactMessage | None:
        await self._life.breathe()
        return await self._inner.last_fact(subject)

    async def fact_after(self, subject: str, sequence: int) -> FactMessage | None:
        await self._life.breathe()
        return await self._inner.fact_after(subject, sequence)

    async def count_facts(self, pattern: str) -> Mapping[str, int]:
        await self._life.breathe()
        return await self._inner.count_facts(pattern)

    async def consume(self, pattern: str, durable: str, handler: FactHandler) -> Subscription:
        return await self._inner.consume(pattern, durable, handler)

    async def close(self) -> None:
        await self._inner.close()
