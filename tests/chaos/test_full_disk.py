"""The disk of NATS is full: facts wait in their outboxes, everything else goes on, and all is told once there is room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.chaos.harness import gathering
from tests.chaos.harness.checker import violations
from tests.chaos.harness.clients import Book, dial
from tests.chaos.harness.site import TABLES, Site
from tests.chaos.harness.thinking import Party

pytestmark = pytest.mark.timeout(300)

VARIANT = "qingdao-charter"
SOON_S = 60.0


@pytest.fixture
async def site(folder: Path) -> AsyncIterator[Site]:
    async with Site(folder) as site:
        await site.start()
        yield site


async def test_only_facts_wait_while_the_disk_of_the_bus_is_full_and_are_told_once_there_is_room(site: Site) -> None:
    async with AsyncExitStack() as opened:
        book, channels = Book(), [dial(site.address(service)) for service in TABLES]
        for channel in channels:
            opened.push_async_callback(channel.close)
        early, late = (Party(name, channels, site.token, book) for name in ("early", "late"))
        early.gate.open()
        late.gate.open()
        await early.sit(VARIANT, deals=1)
        await early.go_on(20, SOON_S)

        site.fill("nats")
        # An engine that starts only now soon leads every table.
        await site.end("engine1")
        await site.revive("engine1")
        await site.heal()
        await site.end("engine2")
        await late.sit(VARIANT, deals=1)
        for party in (early, late):
            await party.finish(SOON_S)
        waiting = gathering.pending(site.dsn)

        await site.clear("nats")
        assert await gathering.settle(site.dsn, site.bus_url, SOON_S, with_engines=True)
        evidence = await gathering.evidence(site.dsn, site.bus_url, book)

    assert waiting.keys() == {early.table_id, late.table_id}
    assert evidence.bus.keys() == waiting.keys()
    assert violations(evidence) == []
    assert site.outcries() == []
