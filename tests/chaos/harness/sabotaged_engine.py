"""Engines that break a law on purpose, so that a run can show that it would notice.

Law: for test runs alone. The house's own engine is composed with adapters that lie: those that `GOUJI_SABOTAGE`
names, `hasty`, `forgetful` or `careless`, read here and nowhere else.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from uuid import UUID, uuid4

from engine.runtime.bus import Bus
from engine.store.chain import chained
from engine.store.port import Append, Appended, EventStore
from tests.chaos.harness.engine import Around, live
from tests.support.faulty_store import FaultyStore

HASTY_S = 0.5
"""How much later an action is stored than it is acknowledged."""


class Hasty(FaultyStore):
    """Acknowledges first and stores a little later, so that a crash in between loses what was acknowledged."""

    def __init__(self, inner: EventStore) -> None:
        super().__init__(inner)
        self._late: set[asyncio.Task[Appended]] = set()
        self._last: dict[UUID, asyncio.Task[Appended]] = {}

    async def append(self, append: Append) -> Appended:
        """Answer at once what the store will answer later."""
        previous = self._last.get(append.table_id)
        task = asyncio.create_task(self._store_later(append, previous))
        self._last[append.table_id] = task
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        events = chained(append, bytes(32))
        return Appended(events[-1].version, events[-1].hash)

    async def _store_later(self, append: Append, previous: asyncio.Task[Appended] | None) -> Appended:
        await asyncio.sleep(HASTY_S)
        if previous is not None:
            await asyncio.wait({previous})
        return await self.inner.append(append)


class Forgetful(FaultyStore):
    """Knows no command again: every append gets a new id, so that nothing of what was sent twice is recognised."""

    async def append(self, append: Append) -> Appended:
        """Store under another id than the one that was asked for."""
        return await self.inner.append(replace(append, command_id=uuid4()))


class Careless:
    """A bus on which facts are published without saying which one they follow, each twice."""

    def __init__(self, inner: Bus) -> None:
        self._inner = inner
        self.request = inner.request
        self.serve = inner.serve
        self.publish = inner.publish
        self.subscribe = inner.subscribe
        self.last_fact = inner.last_fact
        self.consume = inner.consume
        self.close = inner.close

    async def publish_fact(
        self,
        subject: str,
        payload: bytes,
        *,
        event_id: str,
        expected_sequence: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Publish under names that the bus has never heard."""
        del expected_sequence
        await self._inner.publish_fact(subject, payload, event_id=f"{event_id}.again", headers=headers)
        return await self._inner.publish_fact(subject, payload, event_id=event_id, headers=headers)


STORES: Mapping[str, Callable[[EventStore], EventStore]] = {"hasty": Hasty, "forgetful": Forgetful}
BUSES: Mapping[str, Callable[[Bus], Bus]] = {"careless": Careless}


def around(names: Sequence[str]) -> Around:
    """What these sabotages put around store and bus."""
    stores = [STORES[name] for name in names if name in STORES]
    buses = [BUSES[name] for name in names if name in BUSES]
    return Around(
        store=lambda store: reduce(lambda inner, put: put(inner), stores, store),
        bus=lambda bus: reduce(lambda inner, put: put(inner), buses, bus),
    )


if __name__ == "__main__":
    live(around(os.environ["GOUJI_SABOTAGE"].split()))
