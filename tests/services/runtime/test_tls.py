"""TLS on the gRPC port: who trusts whom, and certificates that are renewed while the server runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from engine.runtime.grpc_client import DialOptions, dial
from engine.runtime.grpc_server import GrpcServer, ServerOptions, Tls
from tests.support.authority import Authority


@pytest.fixture
def house(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "house")


async def served(tls: Tls) -> AsyncIterator[int]:
    server = GrpcServer(ServerOptions(tls=tls), [])
    await server.start()
    yield server.port
    await server.stop(grace=0)


@pytest.fixture
async def port(house: Authority) -> AsyncIterator[int]:
    async for port in served(Tls(*house.issue("server"))):
        yield port


@pytest.fixture
async def closed_port(house: Authority) -> AsyncIterator[int]:
    """A port that lets in only clients with a certificate of the house."""
    async for port in served(Tls(*house.issue("server"), client_ca=house.file)):
        yield port


async def is_let_in(options: DialOptions) -> bool:
    async with dial(options) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        try:
            await stub.Check(health_pb2.HealthCheckRequest(), timeout=10)
        except grpc.aio.AioRpcError as refusal:
            if refusal.code() is grpc.StatusCode.UNAVAILABLE:
                return False
            raise
    return True


async def test_who_trusts_the_authority_is_let_in(house: Authority, port: int) -> None:
    assert await is_let_in(DialOptions(f"127.0.0.1:{port}", tls=True, ca=house.file))


async def test_who_trusts_another_authority_does_not_talk(tmp_path: Path, port: int) -> None:
    stranger = Authority(tmp_path, "stranger")

    assert not await is_let_in(DialOptions(f"127.0.0.1:{port}", tls=True, ca=stranger.file))


async def test_who_speaks_plainly_is_not_understood(port: int) -> None:
    assert not await is_let_in(DialOptions(f"127.0.0.1:{port}"))


async def test_a_client_may_have_to_show_a_certificate_too(house: Authority, tmp_path: Path, closed_port: int) -> None:
    target = f"127.0.0.1:{closed_port}"
    known, unknown = house.issue("client"), Authority(tmp_path, "stranger").issue("other")

    assert await is_let_in(DialOptions(target, tls=True, ca=house.file, certificate=known[0], key=known[1]))
    assert not await is_let_in(DialOptions(target, tls=True, ca=house.file, certificate=unknown[0], key=unknown[1]))
    assert not await is_let_in(DialOptions(target, tls=True, ca=house.file))


async def test_a_renewed_certificate_is_used_without_a_restart(tmp_path: Path, port: int) -> None:
    renewed = Authority(tmp_path, "renewed")
    options = DialOptions(f"127.0.0.1:{port}", tls=True, ca=renewed.file)
    assert not await is_let_in(options)

    renewed.issue("server")

    assert await is_let_in(options)


def test_a_certificate_that_is_not_there_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Tls(tmp_path / "missing.pem", tmp_path / "missing.key").credentials()
