"""The event store's adapters as the contract suite tries them, and a clock that the tests move.

Law: makes and moves; asserts nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import UUID

from engine.store.port import (
    EventStore,
)
from tests.support.streams import append, table_id

TTL_MS = 1200
FOR_EVER_MS = 60_000


@dataclass
class Opened:
    """An adapter under test, and how to let its clock run on."""

    store: EventStore
    pass_ms: Callable[[int], Awaitable[None]]


@dataclass
class FakeClock:
    """Milliseconds that pass when told to."""

    ms: int = field(default_factory=lambda: time.monotonic_ns() // 1_000_000)

    def __call__(self) -> int:
        return self.ms

    async def pass_ms(self, ms: int) -> None:
        self.ms += ms


async def really_pass_ms(ms: int) -> None:
    await asyncio.sleep(ms / 1000)


async def opened_table(store: EventStore, table: UUID | None = None, *, epoch: int = 1) -> UUID:
    table = table or table_id()
    await store.append(append(table, epoch=epoch))
    return table
