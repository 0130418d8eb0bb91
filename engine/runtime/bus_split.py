"""A bus that keeps requests and live messages in the process and sends durable facts over another one.

Law: sorts, and adds nothing; the two buses behind it keep the promises of `bus.py`. Requests and live messages reach only
this process, but for the patterns `outward`, which are for operators elsewhere. So it suits exactly one process that is
everybody else who asks, answers and listens; a second one beside it would not hear the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.runtime.bus import (
    Bus,
    FactHandler,
    FactMessage,
    MessageHandler,
    RequestHandler,
    Subscription,
)
from engine.runtime.streams import matches


class SplitBus:
    """Two buses as one, as `bus.Bus` promises. Closing it closes both."""

    def __init__(self, inside: Bus, outside: Bus, outward: Sequence[str] = ()) -> None:
        self._inside = inside
        self._outside = outside
        self._outward = tuple(outward)

    async def request(
        self,
        subject: str,
        payload: bytes,
        *,
        timeout: float,  # noqa: ASYNC109 - it travels, and an adapter bounds more by it than the waiting
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Ask where this subject is served."""
        return await self._side(subject).request(subject, payload, timeout=timeout, headers=headers)

    async def serve(self, subject: str, handler: RequestHandler, *, in_flight: int = 1024) -> Subscription:
        """Answer those who may ask."""
        return await self._side(subject).serve(subject, handler, in_flight=in_flight)

    async def publish(self, subject: str, payload: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        """Send a live message to where its listeners are."""
        await self._side(subject).publish(subject, payload, headers=headers)

    async def subscribe(self, subject: str, handler: MessageHandler, *, pending: int = 4096) -> Subscription:
        """Receive live messages from where they are sent."""
        return await self._side(subject).subscribe(subject, handler, pending=pending)

    async def publish_fact(
        self,
        subject: str,
        payload: bytes,
        *,
        event_id: str,
        expected_sequence: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Publish durably, for everybody."""
        return await self._outside.publish_fact(
            subject, payload, event_id=event_id, expected_sequence=expected_sequence, headers=headers
        )

    async def last_fact(self, subject: str) -> FactMessage | None:
        """The newest durable message of this subject, whoever published it."""
        return await self._outside.last_fact(subject)

    async def fact_after(self, subject: str, sequence: int) -> FactMessage | None:
        """The first durable message of this subject beyond a sequence, whoever published it."""
        return await self._outside.fact_after(subject, sequence)

    async def count_facts(self, pattern: str) -> Mapping[str, int]:
        """How many durable messages there are, whoever published them."""
        return await self._outside.count_facts(pattern)

    async def consume(self, pattern: str, durable: str, handler: FactHandler) -> Subscription:
        """Deliver durable messages of everybody."""
        return await self._outside.consume(pattern, durable, handler)

    async def close(self) -> None:
        """Close both."""
        await self._inside.close()
        await self._outside.close()

    def _side(self, subject: str) -> Bus:
        return self._outside if any(matches(pattern, subject) for pattern in self._outward) else self._inside
