"""What the contract of the bus is tried with: inboxes, echoes, facts.

Law: sends and collects; asserts nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

from engine.runtime import subjects
from engine.runtime.bus import (
    Bus,
    FactMessage,
    Message,
)

Connect = Callable[[], Awaitable[Bus]]

PAUSE = 0.1
SOON = 5.0


class Inbox:
    """Collects what a handler gets; can be told to refuse some payloads a number of times."""

    def __init__(self, refuse: dict[bytes, int] | None = None) -> None:
        self.facts: list[FactMessage] = []
        self.payloads: list[bytes] = []
        self._refuse = refuse or {}
        self._arrived = asyncio.Condition()

    async def take(self, message: Message | FactMessage) -> None:
        if isinstance(message, FactMessage):
            self.facts.append(message)
        if self._refuse.get(message.payload, 0) > 0:
            self._refuse[message.payload] -= 1
            raise ValueError("refused")
        async with self._arrived:
            self.payloads.append(message.payload)
            self._arrived.notify_all()

    async def holds(self, number: int) -> list[bytes]:
        async with asyncio.timeout(SOON), self._arrived:
            await self._arrived.wait_for(lambda: len(self.payloads) >= number)
        return self.payloads


async def echo(message: Message) -> bytes:
    return message.payload + message.headers.get("Suffix", "").encode()


async def published(bus: Bus, *payloads: bytes, subject: str | None = None) -> str:
    subject = subject or subjects.fact(uuid4())
    for payload in payloads:
        await bus.publish_fact(subject, payload, event_id=uuid4().hex)
    return subject
