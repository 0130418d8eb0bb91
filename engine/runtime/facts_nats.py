"""Durable facts over JetStream: the streams are laid out here, and a consumer's position is kept by the server.

Law: JetStream only; requests and live messages are in `bus_nats.py`. A lost stream or consumer is made again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NotFoundError

from engine.runtime.bus import FactHandler, FactMessage
from engine.runtime.bus_measures import BusMeasures
from engine.runtime.streams import STREAMS, Stream, stream_of

_log = structlog.get_logger(__name__)

_ACK_WAIT = 30.0
_API_WAIT = 5.0
_FETCH_WAIT = 2.0
_LONGEST_PAUSE = 30.0
_MOST_UNACKNOWLEDGED = 1000


async def lay_streams(jetstream: JetStreamContext, replicas: int) -> None:
    """Create the streams that are missing and bring the others to their present limits."""
    for stream in STREAMS:
        config = _stream_config(stream, replicas)
        try:
            await jetstream.update_stream(config)
        except NotFoundError:
            await jetstream.add_stream(config)


async def counts(client: Client, stream: str, pattern: str) -> dict[str, int]:
    """How many messages of a pattern a stream holds, by subject. The server tells them in pages.

    Raises `nats.errors.Error`, `nats.js.errors.APIError`.
    """
    found: dict[str, int] = {}
    while True:
        asked = json.dumps({"subjects_filter": pattern, "offset": len(found)}).encode()
        answer = json.loads((await client.request(f"$JS.API.STREAM.INFO.{stream}", asked, timeout=_API_WAIT)).data)
        if "error" in answer:
            raise APIError.from_error(answer["error"])
        page = answer["state"].get("subjects") or {}
        found |= page
        if not page or len(found) >= answer.get("total", 0):
            return found


def _stream_config(stream: Stream, replicas: int) -> api.StreamConfig:
    return api.StreamConfig(
        name=stream.name,
        subjects=[stream.pattern],
        retention=api.RetentionPolicy.LIMITS,
        # A full stream refuses what is new, which waits in its outbox, rather than lose what nobody has read.
        discard=api.DiscardPolicy.NEW,
        storage=api.StorageType.FILE,
        max_age=stream.max_age,
        max_bytes=stream.max_bytes,
        max_msgs=stream.max_messages,
        duplicate_window=stream.duplicate_window,
        num_replicas=replicas,
    )


class Consumer:
    """One taker of a durable name's messages. `lay` makes the streams again; `pause` is that after a first failure."""

    def __init__(
        self,
        client: Client,
        jetstream: JetStreamContext,
        pattern: str,
        durable: str,
        *,
        lay: Callable[[], Awaitable[None]],
        pause: float,
        measures: BusMeasures,
    ) -> None:
        self._client = client
        self._jetstream = jetstream
        self._stream = stream_of(pattern).name
        self._pattern = pattern
        self._durable = durable
        self._lay = lay
        self._pause = pause
        self._measures = measures
        self._interrupted = measures.interrupted.labels(durable)
        self._interrupted.set(1)
        self._pull: JetStreamContext.PullSubscription | None = None

    async def bind(self) -> JetStreamContext.PullSubscription:
        """Make the durable consumer, or find it at its position."""
        await self._jetstream.add_consumer(self._stream, self._config())
        self._pull = await self._jetstream.pull_subscribe_bind(self._durable, self._stream)
        self._interrupted.set(0)
        return self._pull

    async def take(self) -> Msg:
        """Wait for the next message, through whatever happens to the server."""
        while True:
            try:
                return await self._fetch()
            except nats.errors.TimeoutError:
                continue
            except nats.errors.Error as failure:
                _log.warning("consumer_interrupted", durable=self._durable, error=str(failure))
                self._interrupted.set(1)
                await self._unbind()
                await asyncio.sleep(self._pause)

    def settling(self, handler: FactHandler) -> Callable[[Msg], Awaitable[None]]:
        """Give messages to the handler and acknowledge those that it takes."""

        async def settle(msg: Msg) -> None:
            fact = fact_of(msg)
            try:
                await handler(fact)
            except asyncio.CancelledError:
                await msg.nak()
                raise
            except Exception:  # noqa: BLE001 - whatever was wrong, the fact comes again
                _log.warning("fact_not_taken", subject=fact.subject, deliveries=fact.deliveries, exc_info=True)
                self._count("failed")
                await _answer(msg.nak(min(self._pause * 2 ** (fact.deliveries - 1), _LONGEST_PAUSE)))
            else:
                self._count("taken")
                await _answer(msg.ack())

        return settle

    async def close(self) -> None:
        """Let go of the server; the position stays there."""
        await self._unbind()

    def _count(self, result: str) -> None:
        self._measures.facts.labels(self._durable, result).inc()

    async def _fetch(self) -> Msg:
        if not self._client.is_connected:
            await asyncio.sleep(0.1)
            raise nats.errors.TimeoutError
        pull = self._pull or await self._bind_again()
        (msg,) = await pull.fetch(1, timeout=_FETCH_WAIT)
        return msg

    async def _bind_again(self) -> JetStreamContext.PullSubscription:
        await self._lay()
        return await self.bind()

    async def _unbind(self) -> None:
        pull, self._pull = self._pull, None
        if pull is not None:
            with suppress(nats.errors.Error):
                await pull.unsubscribe()

    def _config(self) -> api.ConsumerConfig:
        return api.ConsumerConfig(
            name=self._durable,
            durable_name=self._durable,
            filter_subject=self._pattern,
            deliver_policy=api.DeliverPolicy.ALL,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=_ACK_WAIT,
            max_deliver=-1,
            max_ack_pending=_MOST_UNACKNOWLEDGED,
        )


def fact_of(msg: Msg) -> FactMessage:
    """Read a delivered message."""
    place = msg.metadata
    return FactMessage(msg.subject, msg.data, msg.headers or {}, place.sequence.stream, place.num_delivered)


async def _answer(answering: Awaitable[None]) -> None:
    """Tell the server; if it is gone, the message comes again."""
    with suppress(nats.errors.Error):
        await answering
