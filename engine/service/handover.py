"""One replica tells the others that it has given shards up, so that they do not wait for their next round.

Law: a hint and no more: leases are settled in the store, and a hint that is lost costs the others one round.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from engine.runtime import subjects
from engine.runtime.bus import Bus, BusUnavailable, Message, Subscription


async def tell(bus: Bus) -> None:
    """Tell all replicas that shards are free."""
    with suppress(BusUnavailable):
        await bus.publish(subjects.FREE_SHARDS, b"")


async def hear(bus: Bus, look: Callable[[], None]) -> Subscription:
    """Have this called whenever a replica tells of free shards. Raises `BusUnavailable`."""

    async def heard(_: Message) -> None:
        look()

    return await bus.subscribe(subjects.FREE_SHARDS, heard)
