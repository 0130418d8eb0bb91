"""The door of a gRPC server: every call is named, counted, limited, authenticated, and its failure translated.

Law: knows no service. One interceptor does it all in one layer, for a layer costs every message of every stream. In
this order: room for one more call, the address's rate, the token, the player's rate, the handler, the table of statuses.
Health checks need no token and are not limited; reflection needs no token.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import grpc
import structlog
from google.protobuf.message import DecodeError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from engine.runtime import identity
from engine.runtime.addresses import Network, caller_address
from engine.runtime.clock import Clock
from engine.runtime.faults import Busy, MalformedRequest, Unauthenticated
from engine.runtime.identity import Identity, Role, Verifier
from engine.runtime.limits import Meter, Rate
from engine.runtime.statuses import Answer, answer_to
from engine.runtime.uuid7 import uuid7

_log = structlog.get_logger(__name__)

_HEALTH = "/grpc.health.v1.Health/"
_OPEN = (_HEALTH, "/grpc.reflection.v1alpha.ServerReflection/", "/grpc.reflection.v1.ServerReflection/")
_REQUEST_ID = "x-request-id"
_ID_FORM = re.compile(r"[0-9A-Za-z_-]{8,64}")
_BEARER = "bearer "
_EXPIRY_LEEWAY = 5.0

Context = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Behaviour = Callable[[Any, Context], Any]
Decode = Callable[[bytes], object]
Run = Callable[[], Awaitable[object]]
Metadata = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is let in: calls at once, per player and per address; addresses of proxies that are believed."""

    calls: int = 10_000
    player: Rate = field(default_factory=lambda: Rate(per_second=20.0, burst=40.0))
    address: Rate = field(default_factory=lambda: Rate(per_second=200.0, burst=400.0))
    proxies: Sequence[Network] = ()


class Measures:
    """What the door counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.calls = Counter(
            "gouji_grpc_calls_total", "Calls by how they ended.", ["method", "code"], registry=registry
        )
        self.seconds = Histogram(
            "gouji_grpc_call_seconds", "How long calls with one answer took.", ["method"], registry=registry
        )
        self.in_flight = Gauge("gouji_grpc_calls_in_flight", "Calls and streams being served.", registry=registry)


class Door(grpc.aio.ServerInterceptor):
    """Lets calls in, one by one."""

    def __init__(self, verifier: Verifier, bounds: Bounds, measures: Measures, clock: Clock) -> None:
        self._verifier = verifier
        self._bounds = bounds
        self._measures = measures
        self._clock = clock
        self._addresses = Meter("calls of one address", bounds.address, clock.monotonic)
        self._players = Meter("calls", bounds.player, clock.monotonic)
        self._in_flight = 0
        self._handlers: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Put the door before the handler; a method that nobody serves has none."""
        method = handler_call_details.method
        handler = await continuation(handler_call_details)
        if handler is not None and method not in self._handlers:
            self._handlers[method] = self._guarded(handler, method)
        return self._handlers.get(method)

    def _guarded(self, handler: Handler, method: str) -> Handler:
        if handler.response_streaming:
            return _rebuilt(handler, self._streaming(_behaviour(handler), method))
        return _rebuilt(handler, self._answering(_behaviour(handler), method))

    def _answering(self, behaviour: Behaviour, method: str) -> Behaviour:
        async def answer(request: object, context: Context) -> object:
            with self._measures.seconds.labels(method).time():
                return await self._serve(method, context, lambda: behaviour(request, context))

        return answer

    def _streaming(self, behaviour: Behaviour, method: str) -> Behaviour:
        async def stream(request: object, context: Context) -> None:
            await self._serve(method, context, lambda: _written(behaviour(request, context), context))

        return stream

    async def _serve(self, method: str, context: Context, run: Run) -> object:
        said = _metadata(context)
        request_id = _request_id(said)
        structlog.contextvars.bind_contextvars(request_id=request_id, method=method)
        self._measures.in_flight.inc()
        code = grpc.StatusCode.CANCELLED
        try:
            answer = await self._admitted(method, context, said, run)
            code = _code(context)
        except grpc.aio.AbortError:
            code = _code(context)
            raise
        except Exception as error:  # noqa: BLE001 - the table of statuses decides
            told = answer_to(error, request_id)
            code = told.code
            _note(told, error)
            await context.abort(code, told.detail, (*told.trailing(), (_REQUEST_ID, request_id)))
        else:
            return answer
        finally:
            self._measures.in_flight.dec()
            self._measures.calls.labels(method, code.name).inc()

    async def _admitted(self, method: str, context: Context, said: Metadata, run: Run) -> object:
        if method.startswith(_HEALTH):
            return await run()
        with self._room():
            self._addresses.take(_address(context, said, self._bounds.proxies))
            if method.startswith(_OPEN):
                return await run()
            return await self._until_expiry(self._known(said), run)

    @contextmanager
    def _room(self) -> Iterator[None]:
        if self._in_flight >= self._bounds.calls:
            raise Busy("Too many calls at once.", reason="TOO_MANY_CALLS", metadata={"limit": "calls"})
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1

    def _known(self, said: Metadata) -> Identity:
        """Tell who calls, within his rate; services and admins have none."""
        who = self._verifier.verify(_token(said))
        if who.role is Role.PLAYER:
            self._players.take(who.subject)
        identity.enter(who)
        return who

    async def _until_expiry(self, who: Identity, run: Run) -> object:
        """Serve no longer than the token is valid: a stream does not outlive it."""
        left = max(0.0, (who.expires_at_ms - self._clock.now_ms()) / 1000) + _EXPIRY_LEEWAY
        try:
            async with asyncio.timeout(left) as limit:
                return await run()
        except TimeoutError as late:
            if limit.expired():
                raise Unauthenticated("The token has expired.", reason="TOKEN_EXPIRED") from late
            raise


def _behaviour(handler: Handler) -> Behaviour:
    """Find the handler's function, with messages decoded here, so that a malformed one is the caller's fault."""
    decode = handler.request_deserializer or _as_it_is
    kinds: tuple[Any, ...] = (handler.unary_unary, handler.unary_stream, handler.stream_unary, handler.stream_stream)
    served = next(kind for kind in kinds if kind)
    if handler.request_streaming:
        return lambda requests, context: served(_decoded(requests, decode), context)
    return lambda request, context: served(_read(request, decode), context)


def _rebuilt(handler: Handler, behaviour: Behaviour) -> Handler:
    """Make the same kind of handler around another function."""
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[handler.request_streaming, handler.response_streaming]
    return make(behaviour, None, handler.response_serializer)


async def _written(responses: Any, context: Context) -> None:
    """Send what a handler yields, or let one that writes by itself do so."""
    if not hasattr(responses, "__aiter__"):
        await responses
        return
    async with aclosing(responses):
        async for response in responses:
            await context.write(response)


async def _decoded(requests: AsyncIterator[bytes], decode: Decode) -> AsyncIterator[object]:
    async for request in requests:
        yield _read(request, decode)


def _read(request: bytes, decode: Decode) -> object:
    try:
        return decode(request)
    except DecodeError as malformed:
        raise MalformedRequest("The message cannot be read.") from malformed


def _as_it_is(request: bytes) -> object:
    return request


def _code(context: Context) -> grpc.StatusCode:
    """Tell what a handler that has ended left behind; gRPC takes nothing for `OK`, though the stubs do not say so."""
    code: grpc.StatusCode | None = context.code()
    return code or grpc.StatusCode.OK


def _metadata(context: Context) -> Metadata:
    """Read the text values of the call's metadata, once; of a key that comes twice, the first."""
    written = reversed(tuple(context.invocation_metadata() or ()))
    return {name: value for name, value in written if isinstance(value, str)}


def _token(said: Metadata) -> str:
    value = said.get("authorization", "")
    if value[: len(_BEARER)].lower() != _BEARER:
        raise Unauthenticated("The call has no token.", reason="TOKEN_MISSING")
    return value[len(_BEARER) :].strip()


def _request_id(said: Metadata) -> str:
    """Take the caller's own id of the request, if it is one, else make one."""
    given = said.get(_REQUEST_ID, "")
    return given if _ID_FORM.fullmatch(given) else uuid7().hex


def _address(context: Context, said: Metadata, proxies: Sequence[Network]) -> str:
    return caller_address(context.peer(), said.get("x-forwarded-for", ""), proxies)


def _note(told: Answer, error: Exception) -> None:
    if told.code is grpc.StatusCode.INTERNAL:
        _log.error("call_failed", exc_info=error)
    else:
        _log.info("call_refused", code=told.code.name, reason=told.reason)
