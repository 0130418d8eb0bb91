"""The bus's port: requests, live messages and durable facts between services.

Law: this file knows no game and no driver. Every adapter, NATS (`bus_nats.py`), in-process (`bus_memory.py`) and one of
each (`bus_split.py`), promises exactly what is written here, and one contract suite holds them to it. Payloads are bytes;
subjects are dot-separated tokens as in NATS, `*` one token, `>` the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


class NoResponders(Exception):
    """Nobody serves this subject right now: try again until the deadline."""


class RequestTimedOut(Exception):
    """No answer in time; whether the request took effect is unknown."""


class HandlerFailed(RequestTimedOut):
    """The one who serves this subject broke over the request; whether it took effect is unknown."""


class BusUnavailable(Exception):
    """The bus cannot be reached: back off and try again."""


class OutOfSequence(Exception):
    """The subject's last sequence is not the expected one: somebody else published, look before publishing again."""


@dataclass(frozen=True, slots=True)
class Message:
    """A live message or a request."""

    subject: str
    payload: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FactMessage:
    """A durable message. `sequence` is its place in the stream, `deliveries` how often it was tried."""

    subject: str
    payload: bytes
    headers: Mapping[str, str]
    sequence: int
    deliveries: int


class Subscription(Protocol):
    """Something that runs until it is stopped."""

    async def stop(self) -> None:
        """Stop after what is under way; harmless when repeated."""
        ...


RequestHandler = Callable[[Message], Awaitable[bytes]]
MessageHandler = Callable[[Message], Awaitable[None]]
FactHandler = Callable[[FactMessage], Awaitable[None]]


class Bus(Protocol):
    """All traffic between processes. Methods raise `BusUnavailable` when the bus cannot be reached."""

    async def request(
        self,
        subject: str,
        payload: bytes,
        *,
        timeout: float,  # noqa: ASYNC109 - it travels, and an adapter bounds more by it than the waiting
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Ask one of those who serve this subject.

        Raises `NoResponders` at once, also when the one asked has no room for the request; `RequestTimedOut` after
        `timeout` seconds; `HandlerFailed` as soon as the handler raises.
        """
        ...

    async def serve(self, subject: str, handler: RequestHandler, *, in_flight: int = 1024) -> Subscription:
        """Answer requests on this subject, at most `in_flight` at a time.

        Beyond that they wait in a bounded queue, and beyond the queue they are turned away. Of several who serve one
        subject each request reaches one.
        """
        ...

    async def publish(self, subject: str, payload: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        """Send a live message, at most once, to whoever listens now; in order per publisher."""
        ...

    async def subscribe(self, subject: str, handler: MessageHandler, *, pending: int = 4096) -> Subscription:
        """Receive live messages of a subject or pattern in order. A slow handler loses messages beyond `pending`."""
        ...

    async def publish_fact(
        self,
        subject: str,
        payload: bytes,
        *,
        event_id: str,
        expected_sequence: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Publish durably and return the message's sequence in its stream.

        The same `event_id` is stored once. `expected_sequence` is the sequence of the last message of this very
        subject, 0 for none; raises `OutOfSequence` when it is another, also when that has this `event_id` and another
        payload or headers.
        """
        ...

    async def last_fact(self, subject: str) -> FactMessage | None:
        """The newest durable message of this very subject, if there is one."""
        ...

    async def fact_after(self, subject: str, sequence: int) -> FactMessage | None:
        """The first durable message of this very subject beyond a sequence, if there is one."""
        ...

    async def count_facts(self, pattern: str) -> Mapping[str, int]:
        """How many durable messages of a pattern there are, by subject."""
        ...

    async def consume(self, pattern: str, durable: str, handler: FactHandler) -> Subscription:
        """Deliver durable messages that match, from the beginning, at least once, in order, one at a time.

        A handler that returns acknowledges. One that raises gets the message again after a pause, longer each time;
        later messages do not wait for it, so who needs order puts `gate.py` before its effect.
        Consumers of one `durable` name share the work; a name keeps its position over restarts.
        """
        ...

    async def close(self) -> None:
        """Stop all subscriptions and let go of the connection."""
        ...
