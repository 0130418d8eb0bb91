"""The bus inside one process.

Law: keeps every promise of `bus.py` between the buses of one `Broker`, and nothing after the process ends: facts on it
are as durable as the process. No driver, no game.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from engine.runtime.bus import (
    BusUnavailable,
    FactHandler,
    FactMessage,
    HandlerFailed,
    Message,
    MessageHandler,
    NoResponders,
    RequestHandler,
    RequestTimedOut,
    Subscription,
)
from engine.runtime.desk import Desk
from engine.runtime.facts_memory import EVENT_ID, FactLog, Position
from engine.runtime.pump import Pump
from engine.runtime.running import RunningSet
from engine.runtime.streams import STREAMS, matches, stream_of

_log = structlog.get_logger(__name__)

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class _Request:
    message: Message
    answer: asyncio.Future[bytes]


@dataclass(slots=True)
class Broker:
    """What the buses of one process share. `pause`: seconds before a message whose handler raised comes again."""

    pause: float = 1.0
    servers: defaultdict[str, list[Desk[_Request]]] = field(default_factory=lambda: defaultdict(list))
    listeners: defaultdict[str, list[Desk[Message]]] = field(default_factory=lambda: defaultdict(list))
    patterns: defaultdict[str, list[Desk[Message]]] = field(default_factory=lambda: defaultdict(list))
    logs: dict[str, FactLog] = field(default_factory=lambda: {stream.name: FactLog(stream) for stream in STREAMS})

    def heard_by(self, subject: str) -> list[Desk[Message]]:
        """The desks of everybody who listens to this subject now."""
        heard = list(self.listeners.get(subject, ()))
        for pattern, desks in self.patterns.items():
            if matches(pattern, subject):
                heard.extend(desks)
        return heard

    def durable(self, pattern: str, name: str) -> Position:
        """The position of this name, from the beginning if the name is new."""
        log = self.logs[stream_of(pattern).name]
        if name not in log.positions:
            log.positions[name] = Position(log, pattern, self.pause)
        return log.positions[name]


class MemoryBus:
    """One client of a broker, as `bus.Bus` promises."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._running = RunningSet()
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closed = False

    async def request(
        self,
        subject: str,
        payload: bytes,
        *,
        timeout: float,  # noqa: ASYNC109 - it travels, and an adapter bounds more by it than the waiting
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Ask one of those who serve this subject, each in his turn."""
        self._check()
        request = _Request(Message(subject, payload, headers or {}), asyncio.get_running_loop().create_future())
        desks = self._broker.servers.get(subject)
        if not desks or not desks[0].offer(request):
            raise NoResponders(subject)
        desks.append(desks.pop(0))
        try:
            async with asyncio.timeout(timeout):
                return await request.answer
        except TimeoutError as late:
            raise RequestTimedOut(subject) from late

    async def serve(self, subject: str, handler: RequestHandler, *, in_flight: int = 1024) -> Subscription:
        """Answer requests on this subject."""
        self._check()
        desk = Desk(subject, _answering(handler), in_flight=in_flight, waiting=in_flight)
        return self._attach(self._broker.servers, subject, desk)

    async def publish(self, subject: str, payload: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        """Hand the message to everybody who listens now."""
        self._check()
        message = Message(subject, payload, headers or {})
        for desk in self._broker.heard_by(subject):
            desk.offer(message)

    async def subscribe(self, subject: str, handler: MessageHandler, *, pending: int = 4096) -> Subscription:
        """Receive live messages in order."""
        self._check()
        is_pattern = "*" in subject or ">" in subject
        desks = self._broker.patterns if is_pattern else self._broker.listeners
        return self._attach(desks, subject, Desk(subject, handler, in_flight=1, waiting=pending))

    async def publish_fact(
        self,
        subject: str,
        payload: bytes,
        *,
        event_id: str,
        expected_sequence: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Append to the stream that keeps this subject."""
        self._check()
        log = self._broker.logs[stream_of(subject).name]
        message = FactMessage(subject, payload, {**(headers or {}), EVENT_ID: event_id}, sequence=0, deliveries=1)
        return log.append(message, event_id, expected_sequence)

    async def last_fact(self, subject: str) -> FactMessage | None:
        """The newest message of this subject."""
        self._check()
        return self._broker.logs[stream_of(subject).name].last(subject)

    async def fact_after(self, subject: str, sequence: int) -> FactMessage | None:
        """The first message of this subject beyond a sequence."""
        self._check()
        return self._broker.logs[stream_of(subject).name].after(subject, sequence)

    async def count_facts(self, pattern: str) -> Mapping[str, int]:
        """How many durable messages of a pattern there are, by subject."""
        self._check()
        return self._broker.logs[stream_of(pattern).name].counts(pattern)

    async def consume(self, pattern: str, durable: str, handler: FactHandler) -> Subscription:
        """Deliver from this name's position on."""
        self._check()
        position = self._broker.durable(pattern, durable)
        pump = Pump(position.take, _settling(position, handler), self._die)
        return self._running.add(pump.stop)

    async def close(self) -> None:
        """Stop all subscriptions of this client."""
        self._closed = True
        await self._running.stop()

    async def guard(self) -> None:
        """Run for ever; raise what killed a consumer, if anything did."""
        await asyncio.shield(self._lost)

    def _check(self) -> None:
        if self._closed:
            raise BusUnavailable("closed")

    def _attach(self, desks: defaultdict[str, list[Desk[_Item]]], subject: str, desk: Desk[_Item]) -> Subscription:
        desks[subject].append(desk)

        async def stop() -> None:
            desks[subject].remove(desk)
            if not desks[subject]:
                del desks[subject]
            await desk.stop()

        return self._running.add(stop)

    def _die(self, error: BaseException) -> None:
        if not self._lost.done():
            self._lost.set_exception(error)


def _answering(handler: RequestHandler) -> Callable[[_Request], Awaitable[None]]:
    async def answer(request: _Request) -> None:
        try:
            reply = await handler(request.message)
        except Exception:
            if not request.answer.done():
                request.answer.set_exception(HandlerFailed(request.message.subject))
            raise
        if not request.answer.done():
            request.answer.set_result(reply)

    return answer


def _settling(position: Position, handler: FactHandler) -> Callable[[FactMessage], Awaitable[None]]:
    async def settle(fact: FactMessage) -> None:
        try:
            await handler(fact)
        except asyncio.CancelledError:
            position.returned(fact)
            raise
        except Exception:  # noqa: BLE001 - whatever was wrong, the fact comes again
            _log.warning("fact_not_taken", subject=fact.subject, deliveries=fact.deliveries, exc_info=True)
            position.failed(fact)
        else:
            position.done(fact)

    return settle
