"""An engine is killed before each of its effects, one after the other: what it said and showed is stored, once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count, groupby
from uuid import UUID

import pytest
from gouji.engine.v1 import engine_pb2 as engine

from engine.runtime import subjects
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.uuid7 import uuid7
from engine.service.envelopes import wire as envelopes
from engine.service.reconciliation import facts_in_log
from engine.service.shards import LeaseTerms
from engine.store.chain import first_break
from engine.store.memory import MemoryEventStore
from tests.support.engine_bench import (
    AUDIENCES,
    PLAYERS,
    Callers,
    Replica,
    accepted,
    eventually,
    forms,
    start,
)
from tests.support.mortal import Life, MortalBus, MortalStore

Part = Callable[[Callers], Awaitable[None]]

LEASES = LeaseTerms(want=1)
"""One shard, the first one, is enough for one table and soon led."""
TABLE_ID = UUID(bytes=uuid7().bytes[:15] + b"\0")


async def opens_and_closes(callers: Callers) -> None:
    await callers.open_with_six()
    accepted(await callers.send("admin", house=engine.House(kind=engine.House.KIND_CLOSE, reason="late")))


async def five_are_ready(callers: Callers) -> None:
    await callers.open_with_six()
    for player in PLAYERS[:-1]:
        accepted(await callers.send(player, set_ready=engine.SetReady(ready=True)))


async def deals_and_plays(callers: Callers) -> None:
    accepted(await callers.send(PLAYERS[-1], set_ready=engine.SetReady(ready=True)))
    await callers.play(2)


async def nothing(_: Callers) -> None:
    """Begin at the beginning."""


class House:
    """A store and a bus that outlive an engine with so many effects left."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.store = MemoryEventStore()
        self.life = Life()
        self.callers = Callers(MemoryBus(self.broker), TABLE_ID, answer_s=0.05)

    async def first(self) -> Replica:
        bus = MortalBus(MemoryBus(self.broker), self.life)
        return await start(MortalStore(self.store, self.life), bus, "mortal", leases=LEASES)

    async def second(self, dead: Replica) -> Replica:
        """Bury the dead and let another engine take over, as it does when the lease has run out."""
        self.life.bury()
        await dead.crash()
        await self.store.release_leases("mortal")
        return await start(self.store, MemoryBus(self.broker), "heir", leases=LEASES)

    async def check_stored(self) -> None:
        """What was answered and shown up to now is in the log."""
        log = self.store._streams.get(self.callers.table_id)
        stored = {event.command_id: event.version for event in log.events} if log else {}
        assert self.callers.acknowledged.items() <= stored.items()
        shown = {version for updates in self.callers.shown.values() for version in forms(updates)}
        assert max(shown, default=0) <= max(stored.values(), default=0)

    async def check_whole(self) -> None:
        """The log is one chain with each command once; all that was shown has its form, and every fact is told once."""
        events = await self.store.read(self.callers.table_id)
        assert first_break(events) is None
        runs = [command_id for command_id, _ in groupby(event.command_id for event in events)]
        assert len(runs) == len(set(runs))
        for audience in AUDIENCES:
            player = PLAYERS[int(audience[-1])] if audience != "public" else "nobody"
            history = await self.callers.history(player)
            truth = {one.version: one.SerializeToString(deterministic=True) for one in history.events}
            assert forms(self.callers.shown[audience]).items() <= truth.items()
        await eventually(self._all_told)
        due = await facts_in_log(self.store, await self.store.head(self.callers.table_id), envelopes.facts)
        assert await self._facts() == [fact.entry.payload for fact in due]

    async def _all_told(self) -> bool:
        return not await self.store.pending_facts(range(256), 10)

    async def _facts(self) -> list[bytes]:
        subject, found, sequence = subjects.fact(self.callers.table_id), [], 0
        while (fact := await self.callers.bus.fact_after(subject, sequence)) is not None:
            found.append(fact.payload)
            sequence = fact.sequence
        return found


async def survives(effects: int, before: Part, part: Part) -> bool:
    """Play a part with an engine that has so many effects left, and its heir; tell whether it needed none."""
    house = House()
    first = await house.first()
    await house.callers.watch()
    await before(house.callers)
    house.life.left = effects
    playing = asyncio.ensure_future(part(house.callers))
    death = asyncio.create_task(house.life.died.wait())
    await asyncio.wait({playing, death}, return_when=asyncio.FIRST_COMPLETED)
    for _ in range(10):
        await asyncio.sleep(0)
    await house.check_stored()
    has_died = house.life.died.is_set()
    heir = await house.second(first)
    await playing
    death.cancel()
    await house.check_whole()
    await heir.stop()
    return not has_died


@pytest.mark.parametrize(
    ("before", "part", "least"),
    [(nothing, opens_and_closes, 20), (five_are_ready, deals_and_plays, 30)],
    ids=["opening and closing", "dealing and playing"],
)
async def test_an_engine_killed_at_any_await_has_shown_and_acknowledged_what_is_stored_and_nothing_else(
    before: Part, part: Part, least: int
) -> None:
    for effects in count():
        if await survives(effects, before, part):
            assert effects > least
            return
