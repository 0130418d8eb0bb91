"""The door and the server as callers meet them: a real gRPC server on the loopback, all four kinds of call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Self

import grpc
import pytest
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import StringValue
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import CollectorRegistry

from engine.runtime import faults, identity
from engine.runtime.bus import BusUnavailable, HandlerFailed, NoResponders
from engine.runtime.clock import ManualClock
from engine.runtime.grpc_client import DialOptions, dial
from engine.runtime.grpc_server import GrpcServer, ServerOptions
from engine.runtime.identity import Minter, Role, Verifier, new_keys
from engine.runtime.interceptors import Bounds, Door, Measures
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.limits import Rate
from engine.runtime.logs import request_id
from engine.runtime.parts import start_server

SERVICE = "test.Echo"
HOUR_MS = 3_600_000
PRIVATE, PUBLIC = new_keys()
UNLIMITED = Bounds(player=Rate(1e6, 1e6), address=Rate(1e6, 1e6))

Requests = Callable[[], AsyncIterator[StringValue]]
Context = grpc.aio.ServicerContext[Any, Any]


class Secret(Exception):
    pass


@dataclass
class Echo:
    """Answers with what it was asked; `raises` makes every call fail."""

    raises: Exception | None = None
    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def one(self, request: StringValue, _: Context) -> StringValue:
        self._raise()
        return StringValue(value=f"{request.value} from {identity.current().subject}")

    async def slow(self, request: StringValue, _: Context) -> StringValue:
        self.started.set()
        try:
            await self.release.wait()
        finally:
            asyncio.get_running_loop().call_soon(self.left.set)
        return request

    async def traced(self, _: StringValue, __: Context) -> StringValue:
        return StringValue(value=request_id())

    async def many(self, request: StringValue, _: Context) -> AsyncIterator[StringValue]:
        for number in range(3):
            yield StringValue(value=f"{request.value}{number}")
        self._raise()

    async def written(self, request: StringValue, context: Context) -> None:
        await context.write(request)
        self._raise()

    async def collected(self, requests: AsyncIterator[StringValue], _: Context) -> StringValue:
        self._raise()
        return StringValue(value=",".join([request.value async for request in requests]))

    async def both(self, requests: AsyncIterator[StringValue], _: Context) -> AsyncIterator[StringValue]:
        self._raise()
        async for request in requests:
            yield request

    def register(self, server: grpc.aio.Server) -> None:
        read, write = StringValue.FromString, StringValue.SerializeToString
        handlers = {
            "One": grpc.unary_unary_rpc_method_handler(self.one, read, write),
            "Slow": grpc.unary_unary_rpc_method_handler(self.slow, read, write),
            "Traced": grpc.unary_unary_rpc_method_handler(self.traced, read, write),
            "Many": grpc.unary_stream_rpc_method_handler(self.many, read, write),
            "Written": grpc.unary_stream_rpc_method_handler(self.written, read, write),
            "Collected": grpc.stream_unary_rpc_method_handler(self.collected, read, write),
            "Both": grpc.stream_stream_rpc_method_handler(self.both, read, write),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))

    def _raise(self) -> None:
        if self.raises is not None:
            raise self.raises


class House:
    """A running server, and channels to it."""

    def __init__(self, bounds: Bounds = UNLIMITED, options: ServerOptions | None = None) -> None:
        self.clock = ManualClock()
        self.echo = Echo()
        self.is_ready = True
        self.registry = CollectorRegistry()
        self.minter = Minter(PRIVATE, "gouji", self.clock)
        door = Door(Verifier([PUBLIC], "gouji", self.clock), bounds, Measures(self.registry), self.clock)
        self.server = GrpcServer(options or ServerOptions(), [door])
        self.server.add(SERVICE, self.echo.register, self._ready)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        await self.server.stop(grace=0.5)

    def token(self, subject: str = "ann", role: Role = Role.PLAYER, lifetime_ms: int = HOUR_MS) -> str:
        return self.minter.mint(subject, role, lifetime_ms)

    def channel(self, token: str | None = None) -> grpc.aio.Channel:
        options = DialOptions(f"127.0.0.1:{self.server.port}")
        channel = dial(options, (lambda: token) if token else None)
        self._stack.push_async_callback(channel.close)
        return channel

    def player(self, subject: str = "ann") -> grpc.aio.Channel:
        return self.channel(self.token(subject))

    def counted(self, method: str, code: str) -> float:
        labels = {"method": f"/{SERVICE}/{method}", "code": code}
        return self.registry.get_sample_value("gouji_grpc_calls_total", labels) or 0.0

    async def _ready(self) -> bool:
        return self.is_ready


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with House() as house:
        yield house


async def _nothing_yet() -> AsyncIterator[StringValue]:
    """Requests of a caller who waits to be refused: gRPC's client fails by itself when that happens while it sends."""
    await asyncio.Event().wait()
    yield StringValue()


async def _requests() -> AsyncIterator[StringValue]:
    for value in "abc":
        yield StringValue(value=value)


async def one(channel: grpc.aio.Channel, value: str = "hello", **options: Any) -> str:
    call = channel.unary_unary(f"/{SERVICE}/One", StringValue.SerializeToString, StringValue.FromString)
    return (await call(StringValue(value=value), **options)).value


async def many(channel: grpc.aio.Channel, method: str = "Many") -> list[str]:
    call = channel.unary_stream(f"/{SERVICE}/{method}", StringValue.SerializeToString, StringValue.FromString)
    return [answer.value async for answer in call(StringValue(value="x"))]


async def collected(channel: grpc.aio.Channel, requests: Requests = _requests) -> str:
    call = channel.stream_unary(f"/{SERVICE}/Collected", StringValue.SerializeToString, StringValue.FromString)
    return (await call(requests())).value


async def both(channel: grpc.aio.Channel, requests: Requests = _requests) -> list[str]:
    call = channel.stream_stream(f"/{SERVICE}/Both", StringValue.SerializeToString, StringValue.FromString)
    return [answer.value async for answer in call(requests())]


def unread(channel: grpc.aio.Channel, kind: str, method: str) -> Any:
    """A call of bytes."""
    return getattr(channel, kind)(f"/{SERVICE}/{method}")


def written(channel: grpc.aio.Channel) -> Awaitable[list[str]]:
    return many(channel, "Written")


def silent_collected(channel: grpc.aio.Channel) -> Awaitable[str]:
    return collected(channel, _nothing_yet)


def silent_both(channel: grpc.aio.Channel) -> Awaitable[list[str]]:
    return both(channel, _nothing_yet)


EVERY_KIND = pytest.mark.parametrize("call", [one, many, written, silent_collected, silent_both])
Call = Callable[[grpc.aio.Channel], Awaitable[object]]


async def refused(call: Awaitable[object]) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call
    return refusal.value


def trailing(error: grpc.aio.AioRpcError) -> dict[str, Any]:
    return {str(key): value for key, value in error.trailing_metadata()}


def why(error: grpc.aio.AioRpcError) -> error_details_pb2.ErrorInfo:
    status = status_pb2.Status.FromString(trailing(error)["grpc-status-details-bin"])
    told = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(told)
    assert told.domain == "gouji"
    return told


async def test_a_call_is_served_on_behalf_of_the_caller(house: House) -> None:
    assert await one(house.player("ann")) == "hello from ann"


async def test_every_kind_of_call_passes_the_door(house: House) -> None:
    channel = house.player()

    assert await many(channel) == ["x0", "x1", "x2"]
    assert await written(channel) == ["x"]
    assert await collected(channel) == "a,b,c"
    assert await both(channel) == ["a", "b", "c"]


@EVERY_KIND
async def test_a_call_without_a_token_is_not_served(house: House, call: Call) -> None:
    error = await refused(call(house.channel()))

    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    assert why(error).reason == "TOKEN_MISSING"


async def test_a_token_of_another_audience_is_not_taken(house: House) -> None:
    token = Minter(PRIVATE, "elsewhere", house.clock).mint("ann", Role.PLAYER, HOUR_MS)

    error = await refused(one(house.channel(token)))

    assert (error.code(), why(error).reason) == (grpc.StatusCode.UNAUTHENTICATED, "TOKEN_INVALID")


async def test_an_expired_token_is_not_taken(house: House) -> None:
    channel = house.player()
    await house.clock.advance(HOUR_MS / 1000 + 6)

    error = await refused(one(channel))

    assert (error.code(), why(error).reason) == (grpc.StatusCode.UNAUTHENTICATED, "TOKEN_EXPIRED")


async def test_a_stream_does_not_outlive_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtime.interceptors._EXPIRY_LEEWAY", 0.1)
    async with House() as house:
        stream = unread(house.channel(house.token(lifetime_ms=0)), "stream_stream", "Both")()
        await stream.write(StringValue(value="still here").SerializeToString())
        assert await stream.read() == StringValue(value="still here").SerializeToString()

        error = await refused(stream.read())

        assert (error.code(), why(error).reason) == (grpc.StatusCode.UNAUTHENTICATED, "TOKEN_EXPIRED")


@EVERY_KIND
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (faults.NotFound("No such table.", reason="TABLE_NOT_FOUND"), grpc.StatusCode.NOT_FOUND),
        (faults.MalformedRequest(), grpc.StatusCode.INVALID_ARGUMENT),
        (faults.NotYourSeat(metadata={"seat": "3"}), grpc.StatusCode.PERMISSION_DENIED),
        (faults.Busy(), grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_fault_of_any_kind_of_call_is_told_with_its_reason(
    house: House, call: Call, fault: faults.Fault, code: grpc.StatusCode
) -> None:
    house.echo.raises = fault

    error = await refused(call(house.player()))

    assert (error.code(), error.details()) == (code, fault.detail)
    assert (why(error).reason, dict(why(error).metadata)) == (fault.reason, fault.metadata)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (NoResponders("gouji.engine"), grpc.StatusCode.UNAVAILABLE),
        (BusUnavailable("gouji.engine"), grpc.StatusCode.UNAVAILABLE),
        (HandlerFailed("gouji.engine"), grpc.StatusCode.DEADLINE_EXCEEDED),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_trouble_on_the_bus_is_told_without_its_subject(
    house: House, failure: Exception, code: grpc.StatusCode
) -> None:
    house.echo.raises = failure

    error = await refused(silent_both(house.player()))

    assert error.code() is code
    assert "engine" not in str(error.details())


@EVERY_KIND
async def test_what_nobody_expected_leaks_nothing(house: House, call: Call) -> None:
    house.echo.raises = Secret("hand: bsAAKK")

    error = await refused(call(house.player()))

    assert error.code() is grpc.StatusCode.INTERNAL
    assert why(error).reason == "INTERNAL"
    assert "AAKK" not in f"{error.details()}{trailing(error)}"
    assert "Secret" not in f"{error.details()}{trailing(error)}"


async def test_an_error_names_the_request_that_the_caller_named(house: House) -> None:
    house.echo.raises = faults.NotFound()

    error = await refused(one(house.player(), metadata=(("x-request-id", "request-0001"),)))

    assert trailing(error)["x-request-id"] == "request-0001"


async def test_a_request_gets_an_id_of_its_own_when_the_callers_is_none(house: House) -> None:
    call = house.player().unary_unary(f"/{SERVICE}/Traced", StringValue.SerializeToString, StringValue.FromString)

    ids = {(await call(StringValue(), metadata=(("x-request-id", given),))).value for given in ("", "a b", "x" * 65)}

    assert len(ids) == 3
    assert all(len(made) == 32 for made in ids)


@pytest.mark.parametrize("method", ["One", "Collected", "Both", "Many"])
async def test_a_message_that_cannot_be_read_is_the_callers_fault(house: House, method: str) -> None:
    garbage = b"\xff\xff\xff"
    with pytest.raises(DecodeError):
        StringValue.FromString(garbage)

    async def garbled() -> AsyncIterator[bytes]:
        yield garbage

    channel = house.player()
    calls: dict[str, Callable[[], Any]] = {
        "One": lambda: unread(channel, "unary_unary", "One")(garbage),
        "Collected": lambda: unread(channel, "stream_unary", "Collected")(garbled()),
        "Both": lambda: unread(channel, "stream_stream", "Both")(garbled()).read(),
        "Many": lambda: unread(channel, "unary_stream", "Many")(garbage).read(),
    }

    error = await refused(calls[method]())

    assert (error.code(), why(error).reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST")


async def test_a_message_that_is_too_long_is_refused_and_the_next_is_served(house: House) -> None:
    channel = house.player()

    error = await refused(one(channel, "x" * 300_000))

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await one(channel) == "hello from ann"


async def test_an_unknown_method_is_unimplemented(house: House) -> None:
    error = await refused(unread(house.player(), "unary_unary", "Nothing")(b""))

    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_player_over_his_rate_is_told_when_to_come_back() -> None:
    async with House(replace(UNLIMITED, player=Rate(per_second=2.0, burst=3.0))) as house:
        ann, bob = house.player("ann"), house.player("bob")
        for _ in range(3):
            await one(ann)

        error = await refused(one(ann))

        assert (error.code(), why(error).reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED")
        assert dict(why(error).metadata) == {"limit": "calls", "retry_after_ms": "500"}
        assert await one(bob) == "hello from bob"
        await house.clock.advance(0.5)
        assert await one(ann) == "hello from ann"


async def test_a_service_has_no_rate() -> None:
    async with House(replace(UNLIMITED, player=Rate(per_second=1.0, burst=1.0))) as house:
        channel = house.channel(house.token("matchmaking", Role.SERVICE))

        assert [await one(channel) for _ in range(3)] == ["hello from matchmaking"] * 3


async def test_an_address_over_its_rate_is_refused_before_its_token_is_looked_at() -> None:
    async with House(replace(UNLIMITED, address=Rate(per_second=1.0, burst=2.0))) as house:
        channel = house.channel("no token at all")
        codes = [(await refused(one(channel))).code() for _ in range(3)]

        assert codes == [grpc.StatusCode.UNAUTHENTICATED] * 2 + [grpc.StatusCode.RESOURCE_EXHAUSTED]


async def test_too_many_calls_at_once_are_turned_away_and_the_others_end_well() -> None:
    async with House(replace(UNLIMITED, calls=1)) as house:
        call = house.player().unary_unary(f"/{SERVICE}/Slow", StringValue.SerializeToString, StringValue.FromString)
        serving = asyncio.ensure_future(call(StringValue(value="first")))
        await house.echo.started.wait()

        error = await refused(one(house.player()))

        assert (error.code(), why(error).reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_CALLS")
        house.echo.release.set()
        assert (await serving).value == "first"
        assert await one(house.player()) == "hello from ann"


async def test_cancelled_calls_make_room_again() -> None:
    async with House(replace(UNLIMITED, calls=1)) as house:
        for _ in range(3):
            house.echo.started.clear()
            house.echo.left.clear()
            call = unread(house.player(), "unary_unary", "Slow")(b"")
            await house.echo.started.wait()
            call.cancel()
            await house.echo.left.wait()

        assert house.counted("Slow", "CANCELLED") == 3
        assert await one(house.player()) == "hello from ann"


async def test_calls_are_counted_by_how_they_ended(house: House) -> None:
    await one(house.player())
    house.echo.raises = faults.NotFound()
    await refused(one(house.player()))
    await refused(many(house.player()))

    assert house.counted("One", "OK") == 1
    assert house.counted("One", "NOT_FOUND") == 1
    assert house.counted("Many", "NOT_FOUND") == 1
    assert house.registry.get_sample_value("gouji_grpc_calls_in_flight") == 0


async def test_health_is_told_to_anybody_and_follows_the_service(house: House) -> None:
    stub: Any = health_pb2_grpc.HealthStub(house.channel())
    watch = stub.Watch(health_pb2.HealthCheckRequest(service=SERVICE))
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING

    house.is_ready = False

    assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
    whole = await stub.Check(health_pb2.HealthCheckRequest())
    assert whole.status == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_the_health_of_an_unknown_service_is_not_found(house: House) -> None:
    stub: Any = health_pb2_grpc.HealthStub(house.channel())

    error = await refused(stub.Check(health_pb2.HealthCheckRequest(service="test.Nothing")))

    assert error.code() is grpc.StatusCode.NOT_FOUND


async def test_services_can_be_listed_by_anybody(house: House) -> None:
    channel: Any = house.channel()
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)

    async def ask() -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")

    infos: Any = stub.ServerReflectionInfo
    answer = await infos(ask()).read()

    assert SERVICE in [service.name for service in answer.list_services_response.service]


async def test_a_stop_lets_calls_finish_within_the_grace(house: House) -> None:
    call = house.player().unary_unary(f"/{SERVICE}/Slow", StringValue.SerializeToString, StringValue.FromString)
    serving = asyncio.ensure_future(call(StringValue(value="last")))
    await house.echo.started.wait()
    stopping = asyncio.create_task(house.server.stop(grace=5))
    await asyncio.sleep(0.1)
    house.echo.release.set()

    assert (await serving).value == "last"
    await stopping


async def test_calls_are_cut_off_in_time_when_other_parts_have_used_up_the_grace() -> None:
    house, life, listening = House(), Lifecycle(grace=2), asyncio.Event()

    async def compose(life: Lifecycle) -> None:
        await start_server(life, house.server)
        life.on_stop("streams", lambda: asyncio.sleep(1))
        listening.set()

    running = asyncio.create_task(life.run(compose))
    await listening.wait()
    channel = house.player()
    call = channel.unary_unary(f"/{SERVICE}/Slow", StringValue.SerializeToString, StringValue.FromString)
    serving = asyncio.ensure_future(call(StringValue(value="late")))
    await house.echo.started.wait()
    life.ask_to_stop()

    assert await running == 0
    assert life.left == []
    with pytest.raises(grpc.aio.AioRpcError):
        await serving
    await channel.close()


async def test_a_port_that_is_taken_is_an_error_at_the_start(house: House) -> None:
    second = GrpcServer(ServerOptions(port=house.server.port), [])

    with pytest.raises(OSError, match="cannot listen"):
        await second.start()
