"""What goes out of the process and what does not."""

import asyncio
from uuid import uuid4

import pytest

from engine.runtime import subjects
from engine.runtime.bus import FactMessage, Message, NoResponders
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.bus_split import SplitBus


class House:
    """A process with a split bus, and a client of the outer bus."""

    def __init__(self) -> None:
        outside = Broker()
        self.bus = SplitBus(MemoryBus(Broker()), MemoryBus(outside), ("gouji.witness.*", "operators.*"))
        self.elsewhere = MemoryBus(outside)
        self.heard: list[bytes] = []

    async def hear(self, message: Message | FactMessage) -> None:
        self.heard.append(message.payload)

    async def answer(self, _: Message) -> bytes:
        return b"here"


async def test_requests_stay_in_the_process() -> None:
    house = House()
    await house.bus.serve("ask.me", house.answer)

    assert await house.bus.request("ask.me", b"", timeout=1) == b"here"
    with pytest.raises(NoResponders):
        await house.elsewhere.request("ask.me", b"", timeout=1)


async def test_operators_elsewhere_are_answered() -> None:
    house = House()
    await house.bus.serve("operators.ask", house.answer)

    assert await house.elsewhere.request("operators.ask", b"", timeout=1) == b"here"
    assert await house.bus.request("operators.ask", b"", timeout=1) == b"here"


async def test_live_messages_stay_in_the_process_but_those_for_others() -> None:
    house, table = House(), uuid4()
    await house.elsewhere.subscribe("gouji.>", house.hear)

    await house.bus.publish(subjects.live(table, "seat0"), b"cards")
    await house.bus.publish(subjects.witness(table), b"fingerprint")
    await asyncio.sleep(0.01)

    assert house.heard == [b"fingerprint"]


async def test_facts_go_out_and_come_in() -> None:
    house, table = House(), uuid4()
    await house.bus.consume(subjects.MATCHES, "engine", house.hear)

    await house.elsewhere.publish_fact(subjects.match(table), b"match", event_id="match")
    await house.bus.publish_fact(subjects.fact(table), b"opened", event_id="opened")
    await asyncio.sleep(0.01)

    last = await house.elsewhere.last_fact(subjects.fact(table))
    assert house.heard == [b"match"]
    assert last is not None
    assert last.payload == b"opened"
    await house.bus.close()
