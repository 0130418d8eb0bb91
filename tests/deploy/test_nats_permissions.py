"""Each service's user may do its work, and hears nothing that it has no need of."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from uuid import UUID

import pytest

from deploy.local.nats_server import NatsServer
from engine.runtime import subjects
from engine.runtime.bus import FactMessage, Message
from engine.runtime.bus_nats import NatsBus, NatsOptions

TABLE = UUID(int=6)

Connect = Callable[[str], Awaitable[NatsBus]]


@pytest.fixture
async def bus_of(nats_server: NatsServer, nats_url: str) -> AsyncIterator[Connect]:
    assert nats_url
    async with AsyncExitStack() as open_buses:

        async def connect(user: str) -> NatsBus:
            bus = await NatsBus.connect(NatsOptions((nats_server.url(user),)))
            open_buses.push_async_callback(bus.close)
            return bus

        yield connect


async def test_table_asks_and_engine_answers(bus_of: Connect) -> None:
    async def answer(_: Message) -> bytes:
        return b"accepted"

    await (await bus_of("engine")).serve(subjects.command(6), answer)

    assert await (await bus_of("table")).request(subjects.command(6), b"", timeout=5) == b"accepted"


async def test_table_hears_what_engine_shows(bus_of: Connect) -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def hear(message: Message) -> None:
        heard.put_nowait(message.payload)

    await (await bus_of("table")).subscribe(subjects.live(TABLE, "public"), hear)
    await (await bus_of("engine")).publish(subjects.live(TABLE, "public"), b"shown")

    assert await asyncio.wait_for(heard.get(), 5) == b"shown"


@pytest.mark.parametrize(
    ("teller", "subject", "listener"),
    [
        ("engine", subjects.fact(TABLE), "ranking"),
        ("engine", subjects.fact(TABLE), "matchmaking"),
        ("matchmaking", subjects.match(TABLE), "engine"),
        ("ranking", subjects.rating("ada"), "matchmaking"),
    ],
)
async def test_facts_reach_who_needs_them(bus_of: Connect, teller: str, subject: str, listener: str) -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def hear(message: FactMessage) -> None:
        heard.put_nowait(message.payload)

    await (await bus_of(teller)).publish_fact(subject, b"told", event_id="once")
    await (await bus_of(listener)).consume(subject, f"{listener}-test", hear)

    assert await asyncio.wait_for(heard.get(), 5) == b"told"


@pytest.mark.parametrize("service", ["matchmaking", "ranking"])
async def test_who_needs_no_cards_hears_no_table(bus_of: Connect, service: str) -> None:
    overheard: list[Message] = []
    operator_heard = asyncio.Event()

    async def overhear(message: Message) -> None:
        overheard.append(message)

    async def hear(_: Message) -> None:
        operator_heard.set()

    listening = await bus_of(service)
    await listening.subscribe("gouji.live.>", overhear)
    await (await bus_of("operator")).subscribe("gouji.live.>", hear)
    await (await bus_of("engine")).publish(subjects.live(TABLE, "seat0"), b"a hand")
    await asyncio.wait_for(operator_heard.wait(), 5)
    await asyncio.sleep(0.1)

    assert not overheard
