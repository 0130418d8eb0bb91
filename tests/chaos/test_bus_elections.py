"""Three NATS servers, and the one that leads the stream of facts is killed: some seconds without writes lose nothing."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import nats
import pytest
from prometheus_client import CollectorRegistry

from deploy.local.nats_server import NatsServer
from engine.runtime import subjects
from engine.runtime.bus import FactMessage
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.clock import SystemClock
from engine.runtime.gate import PREVIOUS_HASH, Seen, Verdict, judge
from engine.runtime.outbox_relay import POSITION
from engine.runtime.uuid7 import uuid7
from engine.service.measures import Measures
from engine.service.outbox import Outbox
from engine.service.shards import LeaseTerms, Shards
from engine.store.memory import MemoryEventStore
from engine.store.port import SHARDS, Append, NewEvent, OutboxEntry
from tests.chaos.harness.cluster import cluster
from tests.support.engine_bench import eventually

pytestmark = pytest.mark.timeout(120)

TABLES = 12
FACTS = 25


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[dict[str, NatsServer]]:
    servers = cluster(tmp_path)
    for server in servers.values():
        server.start()
    yield servers
    for server in servers.values():
        server.stop()


@pytest.fixture
async def urls(servers: dict[str, NatsServer]) -> tuple[str, ...]:
    return tuple(server.url() for server in servers.values())


@pytest.fixture
async def bus(urls: tuple[str, ...]) -> AsyncIterator[NatsBus]:
    bus = await NatsBus.connect(NatsOptions(urls, replicas=3, pause=0.2))
    yield bus
    await bus.close()


class Consumer:
    """Whoever lets facts take effect through the gate; what comes too early comes again."""

    def __init__(self) -> None:
        self.effects: dict[str, list[bytes]] = defaultdict(list)
        self._seen: dict[str, Seen] = {}

    async def take(self, message: FactMessage) -> None:
        position, seen = int(message.headers[POSITION]), self._seen.get(message.subject, Seen())
        if judge(message.subject, seen, position, message.headers[PREVIOUS_HASH]) is Verdict.APPLY:
            self._seen[message.subject] = Seen(position, message.headers[PREVIOUS_HASH])
            self.effects[message.subject].append(message.payload)


async def tell(store: MemoryEventStore, tables: list[UUID], outbox: Outbox) -> None:
    """Let facts happen at every table, for some seconds."""
    for position in range(1, FACTS + 1):
        for table in tables:
            entry = OutboxEntry(position, subjects.fact(table), f"{table}:{position}", f"{position}".encode())
            event = NewEvent("told", 1, b"")
            await store.append(Append(table, position - 1, 1, uuid4(), "house", 0, (event,), outbox=(entry,)))
        outbox.nudge()
        await asyncio.sleep(0.25)


async def leader_of_facts(url: str) -> str:
    """The server that leads the stream now."""
    operator = await nats.connect(url)
    info = await operator.jetstream().stream_info("FACTS")
    await operator.close()
    return (info.cluster.leader if info.cluster else None) or ""


async def test_facts_go_on_when_the_server_that_leads_their_stream_is_lost(
    servers: dict[str, NatsServer], urls: tuple[str, ...], bus: NatsBus
) -> None:
    store, clock, consumer = MemoryEventStore(), SystemClock(), Consumer()
    shards = Shards(store, clock, "a", LeaseTerms(ttl_ms=60_000))
    await shards.keep()
    registry = CollectorRegistry()
    outbox = Outbox(store, bus, clock, shards, measures=Measures(registry), sweep_ms=200)
    sweeping = asyncio.create_task(outbox.run())
    other = await NatsBus.connect(NatsOptions(urls[::-1], replicas=3, pause=0.2))
    taking = await other.consume(subjects.FACTS, "reader", consumer.take)
    tables = [uuid7() for _ in range(TABLES)]
    telling = asyncio.create_task(tell(store, tables, outbox))
    await asyncio.sleep(1.5)

    leader = await leader_of_facts(urls[0])
    began = time.monotonic()
    await asyncio.to_thread(servers[leader].kill)
    before = sum(map(len, consumer.effects.values()))

    async def goes_on() -> bool:
        return sum(map(len, consumer.effects.values())) > before + TABLES

    await eventually(goes_on, within=30)
    print(f"\nfacts went on {time.monotonic() - began:.1f} s after the loss of {leader}")  # noqa: T201 - to be read
    await telling
    await asyncio.to_thread(servers[leader].start)

    async def all_took_effect() -> bool:
        return not await store.pending_facts(range(SHARDS), 10) and all(
            len(consumer.effects[subjects.fact(table)]) == FACTS for table in tables
        )

    await eventually(all_took_effect, within=30)
    due = [f"{position}".encode() for position in range(1, FACTS + 1)]
    assert all(consumer.effects[subjects.fact(table)] == due for table in tables)
    assert set((await bus.count_facts(subjects.FACTS)).values()) == {FACTS}
    for name in ("outbox_parked_tables", "bus_holes", "bus_forks"):
        assert registry.get_sample_value(f"gouji_engine_{name}") == 0
    sweeping.cancel()
    await taking.stop()
    await other.close()
