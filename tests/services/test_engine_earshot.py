import asyncio
from collections.abc import AsyncIterator

import pytest

from engine.runtime.bus import BusUnavailable
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.service.earshot import Earshot
from tests.support.engine_bench import eventually


class Link(MemoryBus):
    """A bus that cannot be reached now and then."""

    is_down = False

    async def publish(self, *args: object, **kwargs: object) -> None:
        if self.is_down:
            raise BusUnavailable
        await super().publish(*args, **kwargs)  # type: ignore[arg-type]


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    link = Link(Broker())
    yield link
    await link.close()


async def test_who_hears_himself_has_no_trouble(link: Link) -> None:
    troubles: list[None] = []
    earshot = Earshot(link, lambda: troubles.append(None))
    await earshot.listen()

    await asyncio.gather(*(earshot.confirmed() for _ in range(20)))

    assert troubles == []


async def test_a_link_that_is_down_is_trouble_until_it_is_up(link: Link) -> None:
    troubles: list[None] = []
    earshot = Earshot(link, lambda: troubles.append(None))
    await earshot.listen()
    link.is_down = True

    confirming = asyncio.create_task(earshot.confirmed())
    await asyncio.sleep(0.3)
    assert not confirming.done()
    link.is_down = False
    await asyncio.wait_for(confirming, 5)

    assert troubles


async def test_an_echo_that_is_lost_is_trouble(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.service.earshot._PATIENCE_S", 0.05)
    troubles: list[None] = []
    earshot = Earshot(link, lambda: troubles.append(None))

    confirming = asyncio.create_task(earshot.confirmed())
    await asyncio.sleep(0.2)
    await earshot.listen()
    await asyncio.wait_for(confirming, 5)

    assert troubles


async def test_trouble_is_noticed_though_nobody_asks(link: Link) -> None:
    troubles: list[None] = []
    earshot = Earshot(link, lambda: troubles.append(None))
    await earshot.listen()
    link.is_down = True

    listening = asyncio.create_task(earshot.run())

    async def is_noticed() -> bool:
        return bool(troubles)

    await eventually(is_noticed)
    listening.cancel()


async def test_a_replica_counts_as_deaf_after_a_long_silence_and_not_before(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.service.earshot._LISTEN_S", 0.02)
    monkeypatch.setattr("engine.service.earshot._AGAIN_S", 0.02)
    monkeypatch.setattr("engine.service.earshot._SILENCE_S", 0.5)
    earshot = Earshot(link, lambda: None)
    await earshot.listen()
    listening = asyncio.create_task(earshot.run())

    async def is_deaf() -> bool:
        return not earshot.is_heard()

    async def is_heard() -> bool:
        return earshot.is_heard()

    link.is_down = True
    await asyncio.sleep(0.2)
    assert earshot.is_heard()
    await eventually(is_deaf)
    link.is_down = False
    await eventually(is_heard)
    listening.cancel()
