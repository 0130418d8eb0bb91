"""Every service is told to stop while people play and the database is slow: it ends in time, and nothing is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID, uuid4

import grpc
import psycopg
import pytest
from gouji.engine.v1 import facts_pb2
from gouji.matchmaking.v1 import matchmaking_pb2
from gouji.matchmaking.v1 import matchmaking_pb2_grpc as matchmaking
from gouji.table.v1 import table_pb2
from gouji.table.v1 import table_pb2_grpc as tables

from services.bots.faults import fault_of
from tests.chaos.harness import gathering
from tests.chaos.harness.crews import Club
from tests.chaos.harness.site import OTHERS, SETTINGS, TARGETS, Site
from tests.support.engine_bench import eventually

pytestmark = pytest.mark.timeout(400)

SLOW_S = 0.15
GRACE_S = float(SETTINGS["GOUJI_GRACE"])
LEAVING_S = 4.0
"""For the interpreter to end, and for us to notice."""


LEASES = {"GOUJI_LEASE_TTL_MS": "6000", "GOUJI_LEASE_RENEW_MS": "2000"}
"""The house's own: shorter ones cannot be kept on a database as slow as this one when the cores are busy too."""


@pytest.fixture
async def site(folder: Path) -> AsyncIterator[Site]:
    async with Site(folder, settings={**SETTINGS, **LEASES}) as site:
        await site.start()
        yield site


class Queueing:
    """Players who queue one after the other as long as they are let in; `tickets` are those that were acknowledged."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.tickets: set[str] = set()

    async def run(self) -> None:
        async with grpc.aio.insecure_channel(self._site.address("matchmaking")) as channel:
            stub: matchmaking.MatchmakingServiceAsyncStub = matchmaking.MatchmakingServiceStub(channel)
            while True:
                try:
                    self.tickets.add(await self._queue(stub))
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(0.1)

    async def _queue(self, stub: matchmaking.MatchmakingServiceAsyncStub) -> str:
        player = uuid4().hex
        request = matchmaking_pb2.CreateTicketRequest(command_id=str(uuid4()), variant_key="shandong", deals=4)
        metadata = (("authorization", f"Bearer {self._site.token(player)}"),)
        return str((await stub.CreateTicket(request, metadata=metadata, timeout=5)).ticket.ticket_id)


class Onlooker:
    """Watches a table at the first table service until the stream ends, and tells the reason it gives."""

    def __init__(self, site: Site, table_id: UUID) -> None:
        self._site = site
        self._table_id = str(table_id)
        self.sees = asyncio.Event()

    async def reason_of_end(self) -> str:
        """The reason of a stream that has shown something; one that never did, with engines changing, is tried again."""
        while True:
            reason = await self._watch()
            if self.sees.is_set():
                return reason
            await asyncio.sleep(0.5)

    async def _watch(self) -> str:
        address, options = self._site.address("table1"), [("grpc.enable_retries", 0)]
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            stub: tables.TableServiceAsyncStub = tables.TableServiceStub(channel)
            metadata = (("authorization", f"Bearer {self._site.token('onlooker')}"),)
            try:
                async for _ in stub.Watch(table_pb2.WatchRequest(table_id=self._table_id), metadata=metadata):
                    self.sees.set()
            except grpc.aio.AioRpcError as error:
                return str(fault_of(error))
            return "in peace"


async def drain(site: Site, name: str) -> float:
    """Tell a process to stop, start it again, and give the seconds that it took to stop."""
    began = time.monotonic()
    await site.end(name)
    took_s = time.monotonic() - began
    await site.revive(name)
    await asyncio.to_thread(site._wait, name)
    return took_s


def stored(dsn: str, query: str) -> Sequence[psycopg.rows.TupleRow]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(query.encode()).fetchall()


async def results_told(site: Site) -> int:
    """How many ranked results the bus holds."""
    told = [
        facts_pb2.Fact.FromString(one.payload)
        for facts in (await gathering.facts(site.bus_url)).values()
        for one in facts
    ]
    deals = sum(fact.deal_finished.ranked and bool(fact.deal_finished.places) for fact in told)
    return deals + sum(fact.match_finished.ranked for fact in told)


async def test_each_service_told_to_stop_on_a_slow_database_ends_in_its_grace_and_loses_nothing(site: Site) -> None:
    club, queueing = Club(site, seed=3), Queueing(site)
    club.come(4)
    queue = asyncio.create_task(queueing.run())

    async def is_in_full_swing() -> bool:
        return len(club.book.said) > 150 and len(queueing.tickets) > 3

    await eventually(is_in_full_swing, within=60)
    for link in TARGETS.database_links:
        site.proxies[link].delay(SLOW_S)

    took_s = {"engine1": await drain(site, "engine1")}
    onlooker = Onlooker(site, club.book.said[-1].table_id)
    watching = asyncio.create_task(onlooker.reason_of_end())
    await asyncio.wait_for(onlooker.sees.wait(), 60)
    took_s |= {name: await drain(site, name) for name in ("table1", *OTHERS)}

    print("\ndrained:", {name: f"{seconds:.1f} s" for name, seconds in took_s.items()})  # noqa: T201 - to be read
    assert max(took_s.values()) < GRACE_S + LEAVING_S
    assert site.unclean == []
    assert await asyncio.wait_for(watching, 5) == "DRAINING"
    await site.heal()
    club.late.set()
    before = len(club.book.said)

    async def goes_on() -> bool:
        return len(club.book.said) > before + 50

    await eventually(goes_on, within=60)
    await club.leave()
    queue.cancel()
    assert await gathering.settle(site.dsn, site.bus_url, 60, with_engines=True)
    versions = {
        (table_id, command_id): version
        for table_id, command_id, version in stored(
            site.dsn, "select table_id, command_id, max(version) from engine.event group by table_id, command_id"
        )
    }
    accepted = {(said.table_id, said.command_id): said.accepted_at for said in club.book.said if said.accepted_at}
    assert accepted.items() <= versions.items()
    assert queueing.tickets <= {
        str(ticket) for (ticket,) in stored(site.dsn, "select ticket_id from matchmaking.ticket")
    }
    assert stored(site.dsn, "select count(*) from ranking.result") == [(await results_told(site),)]
    assert stored(site.dsn, "select count(*) from ranking.parked") == [(0,)]
    assert site.outcries() == []
