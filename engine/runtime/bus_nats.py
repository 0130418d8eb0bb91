"""The bus over NATS: core NATS for requests and live messages, JetStream for facts.

Law: keeps every promise of `bus.py`; the driver's errors are turned into the port's here and nowhere else. The
connection is mended for ever with bounded waits; until it is, every call says `BusUnavailable` at once rather than
filling a buffer. A dead link is noticed within three seconds.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription
from nats.aio.transport import TcpTransport
from nats.js import api
from prometheus_client import CollectorRegistry

from engine.runtime.bus import (
    BusUnavailable,
    FactHandler,
    FactMessage,
    HandlerFailed,
    Message,
    MessageHandler,
    NoResponders,
    OutOfSequence,
    RequestHandler,
    RequestTimedOut,
    Subscription,
)
from engine.runtime.bus_measures import BusMeasures
from engine.runtime.desk import Desk
from engine.runtime.ending import end
from engine.runtime.facts_nats import Consumer, counts, lay_streams
from engine.runtime.pump import Pump
from engine.runtime.running import RunningSet
from engine.runtime.streams import stream_of

_log = structlog.get_logger(__name__)

_ANSWER = "Gouji-Answer"
"""The header of a reply that is no answer: `full` when there was no room, `failed` when the handler raised."""

_QUEUE = "servers"
_PUBLISH_WAIT = 5.0
_CLOSE_WAIT = 2.0
_WRONG_LAST_SEQUENCE = 10071
_NO_MESSAGE = 10037
_DRIVER_QUEUE = 65_536

_UNREACHABLE = (
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionDrainingError,
    nats.errors.ConnectionReconnectingError,
    nats.errors.OutboundBufferLimitError,
    nats.errors.StaleConnectionError,
)

_NOBODY_KEEPS_IT = (nats.js.errors.NoStreamResponseError, nats.errors.NoRespondersError)

_NOT_JUST_NOW = (nats.js.errors.ServiceUnavailableError, nats.js.errors.ServerError, nats.errors.TimeoutError)


@dataclass(frozen=True, slots=True)
class NatsOptions:
    """How to connect. Times are in seconds; `pause` is that before a fact whose handler raised comes again."""

    servers: tuple[str, ...]
    name: str = "gouji"
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None
    replicas: int = 1
    connect_within: float = 30.0
    pause: float = 1.0


class _Wire(TcpTransport):
    """The driver's link, which drops what is written after its end, as the driver expects; uvloop's raise instead."""

    def __bool__(self) -> bool:
        # Else the driver would make one of its own.
        return True

    def write(self, payload: bytes) -> None:
        with suppress(RuntimeError):
            super().write(payload)  # type: ignore[no-untyped-call]

    def writelines(self, payload: list[bytes]) -> None:
        with suppress(RuntimeError):
            super().writelines(payload)  # type: ignore[no-untyped-call]


class _Driver(Client):
    """The driver, mended where one who no longer waits for a PONG would cost everybody the connection."""

    def __init__(self) -> None:
        super().__init__()
        self._transport = _Wire()  # type: ignore[no-untyped-call]

    async def forget(self, subscription: NatsSubscription) -> None:
        """Have nothing more sent for this subscription, neither on this link nor on the next.

        The driver alone asks for that once; when the link is lost meanwhile it asks for the subscription anew.
        """
        self._remove_sub(subscription._id)  # noqa: SLF001 - the driver's own
        subscription._stop_processing()  # noqa: SLF001 - as above
        await self._send_unsubscribe(subscription._id)  # noqa: SLF001 - as above

    async def _process_pong(self) -> None:
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()


class NatsBus:
    """A connection to NATS, as `bus.Bus` promises. Made by `connect`."""

    def __init__(self, options: NatsOptions, measures: BusMeasures) -> None:
        self._options = options
        self._measures = measures
        self._client = _Driver()
        self._jetstream = self._client.jetstream(timeout=_PUBLISH_WAIT)
        self._running = RunningSet()
        self._laying = asyncio.Lock()
        self._laying_out: asyncio.Task[None] | None = None
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = False

    @classmethod
    async def connect(cls, options: NatsOptions, registry: CollectorRegistry | None = None) -> NatsBus:
        """Connect and lay out the streams; raises `BusUnavailable` when that takes longer than `connect_within`.

        A server that keeps no facts for a third of that, its disk being full for instance, keeps nobody from all else:
        the streams are laid out when it does. Without a registry nobody sees what is counted.
        """
        bus = cls(options, BusMeasures(registry or CollectorRegistry()))
        starting = asyncio.create_task(bus._start())
        try:
            await asyncio.wait({starting}, timeout=options.connect_within)
        finally:
            await end(starting)
        try:
            await starting
        except (asyncio.CancelledError, nats.errors.Error, OSError) as failure:
            bus._closing = True
            await bus._disconnect()
            raise BusUnavailable("cannot connect in time") from failure  # the urls may hold passwords
        return bus

    @property
    def is_connected(self) -> bool:
        """Whether the server is reached now."""
        return self._client.is_connected

    async def request(
        self,
        subject: str,
        payload: bytes,
        *,
        timeout: float,  # noqa: ASYNC109 - it travels, and an adapter bounds more by it than the waiting
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Ask one of those who serve this subject."""
        self._check()
        with _translated(subject):
            reply = await self._client.request(subject, payload, timeout, headers=_headers(headers))
        if reply.headers and _ANSWER in reply.headers:
            raise NoResponders(subject) if reply.headers[_ANSWER] == "full" else HandlerFailed(subject)
        return reply.data

    async def serve(self, subject: str, handler: RequestHandler, *, in_flight: int = 1024) -> Subscription:
        """Answer requests on this subject."""

        async def answer(msg: Msg) -> None:
            try:
                await self._client.publish(msg.reply, await handler(_message(msg)))
            except Exception:
                await self._refuse(msg, "failed")
                raise

        async def take(msg: Msg) -> None:
            if not desk.offer(msg):
                await self._refuse(msg, "full")

        turned_away = self._measures.turned_away.inc
        desk = Desk(subject, answer, in_flight=in_flight, waiting=in_flight, turned_away=turned_away)
        return await self._attach(subject, _QUEUE, take, desk)

    async def publish(self, subject: str, payload: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        """Send a live message."""
        self._check()
        with _translated(subject):
            await self._client.publish(subject, payload, headers=_headers(headers))

    async def subscribe(self, subject: str, handler: MessageHandler, *, pending: int = 4096) -> Subscription:
        """Receive live messages in order."""

        async def handle(msg: Msg) -> None:
            await handler(_message(msg))

        async def take(msg: Msg) -> None:
            desk.offer(msg)

        desk = Desk(subject, handle, in_flight=1, waiting=pending, turned_away=self._measures.turned_away.inc)
        return await self._attach(subject, "", take, desk)

    async def publish_fact(
        self,
        subject: str,
        payload: bytes,
        *,
        event_id: str,
        expected_sequence: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Publish and wait until the stream has it on disk."""
        self._check()
        stream = stream_of(subject).name
        told = {**(headers or {}), api.Header.MSG_ID.value: event_id}
        sent = dict(told)
        if expected_sequence is not None:
            sent[api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value] = str(expected_sequence)
        with _translated_lasting(subject):
            try:
                return (await self._jetstream.publish(subject, payload, stream=stream, headers=sent)).seq
            except nats.js.errors.BadRequestError as refusal:
                return await self._sequence_of_repeated(subject, payload, told, refusal)

    async def last_fact(self, subject: str) -> FactMessage | None:
        """Ask the stream's leader for the newest message of this subject."""
        self._check()
        with _translated_lasting(subject):
            try:
                last = await self._jetstream.get_last_msg(stream_of(subject).name, subject)
            except nats.js.errors.NotFoundError as missing:
                if missing.err_code == _NO_MESSAGE:
                    return None
                raise
        return _stored(subject, last)

    async def fact_after(self, subject: str, sequence: int) -> FactMessage | None:
        """Ask the stream's leader for the next message of this subject."""
        self._check()
        with _translated_lasting(subject):
            try:
                found = await self._jetstream.get_msg(stream_of(subject).name, sequence + 1, subject, next=True)
            except nats.js.errors.NotFoundError as missing:
                if missing.err_code == _NO_MESSAGE:
                    return None
                raise
        return _stored(subject, found)

    async def count_facts(self, pattern: str) -> Mapping[str, int]:
        """How many durable messages of a pattern there are, by subject."""
        self._check()
        with _translated_lasting(pattern):
            return await counts(self._client, stream_of(pattern).name, pattern)

    async def forget_facts(self, pattern: str) -> None:
        """Delete the stream of this pattern with all that it holds and lay it out anew: for operators.

        Its consumers are gone with it; those that run make themselves again and begin at its beginning.
        """
        self._check()
        with _translated_lasting(pattern):
            await self._jetstream.delete_stream(stream_of(pattern).name)
            await self._lay_streams()

    async def _sequence_of_repeated(
        self, subject: str, payload: bytes, headers: Mapping[str, str], refusal: Exception
    ) -> int:
        """Find the sequence of what is there already, for the server looks at the expected sequence first."""
        last = await self.last_fact(subject)
        if last is None or last.payload != payload or not headers.items() <= last.headers.items():
            raise refusal
        return last.sequence

    async def consume(self, pattern: str, durable: str, handler: FactHandler) -> Subscription:
        """Deliver from this name's position on."""
        self._check()
        consumer = Consumer(
            self._client,
            self._jetstream,
            pattern,
            durable,
            lay=self._lay_streams,
            pause=self._options.pause,
            measures=self._measures,
        )
        with _translated_lasting(pattern):
            await self._bind(consumer, durable)
        pump = Pump(consumer.take, consumer.settling(handler), self._die)

        async def stop() -> None:
            await pump.stop()
            await consumer.close()

        return self._running.add(stop)

    async def _bind(self, consumer: Consumer, durable: str) -> None:
        """Begin to take, now or as soon as the server keeps facts."""
        try:
            await consumer.bind()
        except (*_NOT_JUST_NOW, nats.js.errors.NotFoundError) as failure:
            _log.warning("consumer_interrupted", durable=durable, error=str(failure))

    async def close(self) -> None:
        """Stop all subscriptions, send what is still to be sent, disconnect."""
        self._closing = True
        await self._running.stop()
        with suppress(nats.errors.Error):
            if self._client.is_connected:
                await self._settle()
        await self._disconnect()

    async def guard(self) -> None:
        """Run for ever; raise when the connection or a consumer is given up, so that the process ends visibly."""
        await asyncio.shield(self._lost)

    async def _start(self) -> None:
        await self._connect()
        self._laying_out = asyncio.create_task(self._lay_streams_at_last())
        _, late = await asyncio.wait({self._laying_out}, timeout=self._options.connect_within / 3)
        if late:
            _log.warning("streams_not_laid_out")
            self._laying_out.add_done_callback(self._laid_out_late)
        else:
            await self._laying_out

    def _laid_out_late(self, laying: asyncio.Task[None]) -> None:
        if laying.cancelled():
            return
        if (error := laying.exception()) is not None:
            self._die(error)
        else:
            _log.info("streams_laid_out")

    async def _connect(self) -> None:
        await self._client.connect(
            list(self._options.servers),
            name=self._options.name,
            user=self._options.user,
            password=self._options.password,
            tls=self._options.tls,
            # Else a server that does not speak TLS, or who poses as one, would be sent the password in the clear.
            tls_handshake_first=self._options.tls is not None,
            ping_interval=1,
            max_outstanding_pings=2,
            connect_timeout=2,
            max_reconnect_attempts=-1,
            reconnect_time_wait=1,
            flush_timeout=2.0,
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnected,
            reconnected_cb=self._on_reconnected,
            closed_cb=self._on_closed,
        )

    async def _disconnect(self) -> None:
        """Let the connection go, without waiting for one that broke within its TLS handshake, whose end nobody is told."""
        if self._laying_out is not None:
            await end(self._laying_out)
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WAIT):
                await self._client.close()

    async def _lay_streams_at_last(self) -> None:
        """Lay out the streams; a server that has only just started, or cannot store just now, gets time without end."""
        while True:
            try:
                return await self._lay_streams()
            except (*_NOT_JUST_NOW, *_UNREACHABLE):
                await asyncio.sleep(0.25)

    async def _lay_streams(self) -> None:
        async with self._laying:
            await lay_streams(self._jetstream, self._options.replicas)

    async def _attach(
        self, subject: str, queue: str, take: Callable[[Msg], Awaitable[None]], desk: Desk[Msg]
    ) -> Subscription:
        self._check()
        with _translated_lasting(subject):
            subscription = await self._client.subscribe(subject, queue, take, pending_msgs_limit=_DRIVER_QUEUE)

        async def stop() -> None:
            await self._detach(subscription)
            await desk.stop()

        running = self._running.add(stop)
        try:
            with _translated_lasting(subject):
                await self._settle()
        except (BusUnavailable, asyncio.CancelledError):
            await running.stop()
            raise
        return running

    async def _settle(self) -> None:
        """Wait until the server has seen everything said so far."""
        # The driver's PING overtakes what waits to be written; a second one, sent after the answer, comes behind it.
        for _ in range(2):
            await self._client.flush(timeout=2)

    async def _detach(self, subscription: NatsSubscription) -> None:
        """Take what is on its way already, and then no more."""
        with suppress(nats.errors.Error, TimeoutError):
            async with asyncio.timeout(_CLOSE_WAIT):
                await subscription.drain()  # type: ignore[no-untyped-call]
        with suppress(nats.errors.Error):
            await self._client.forget(subscription)

    async def _refuse(self, msg: Msg, why: str) -> None:
        with suppress(nats.errors.Error):
            await self._client.publish(msg.reply, headers={_ANSWER: why})

    def _check(self) -> None:
        if not self._client.is_connected:
            raise BusUnavailable("not connected")

    def _die(self, error: BaseException) -> None:
        if not self._lost.done():
            self._lost.set_exception(error)

    async def _on_error(self, error: Exception) -> None:
        self._measures.errors.inc()
        _log.warning("bus_error", error=repr(error))

    async def _on_disconnected(self) -> None:
        if not self._closing:
            self._measures.disconnects.inc()
            _log.warning("bus_disconnected")

    async def _on_reconnected(self) -> None:
        _log.info("bus_reconnected")

    async def _on_closed(self) -> None:
        if not self._closing:
            _log.critical("bus_given_up")
            self._die(BusUnavailable("the connection was closed for good"))


def _stored(subject: str, msg: api.RawStreamMsg) -> FactMessage:
    return FactMessage(subject, msg.data or b"", msg.headers or {}, msg.seq or 0, 1)


def _message(msg: Msg) -> Message:
    return Message(msg.subject, msg.data, msg.headers or {})


def _headers(headers: Mapping[str, str] | None) -> dict[str, str] | None:
    return dict(headers) if headers else None


@contextmanager
def _translated(subject: str) -> Iterator[None]:
    """Turn the driver's errors into the port's."""
    try:
        yield
    except nats.errors.NoRespondersError as failure:
        raise NoResponders(subject) from failure
    except nats.errors.TimeoutError as failure:
        raise RequestTimedOut(subject) from failure
    except _UNREACHABLE as failure:
        raise BusUnavailable(subject) from failure


@contextmanager
def _translated_lasting(subject: str) -> Iterator[None]:
    """Turn errors into the port's where trying again is harmless: silence is `BusUnavailable` too."""
    try:
        yield
    except nats.js.errors.APIError as failure:
        if failure.err_code == _WRONG_LAST_SEQUENCE:
            raise OutOfSequence(subject) from failure
        raise BusUnavailable(subject) from failure
    except (*_NOBODY_KEEPS_IT, nats.errors.TimeoutError, *_UNREACHABLE) as failure:
        raise BusUnavailable(subject) from failure
