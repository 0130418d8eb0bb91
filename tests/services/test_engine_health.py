"""The engine's own port: its health, by the certificate that operators give it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from deploy.local.health import UNREACHABLE, state_behind, state_of
from engine.runtime.grpc_client import DialOptions
from engine.service.main import compose
from engine.service.settings import EngineSettings
from services.cli.main import app
from tests.fixtures.processes import running
from tests.support.authority import Authority


@pytest.fixture
def house(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "house")


def settings_for(dsn: str, nats_url: str, **changes: Any) -> EngineSettings:
    quick: dict[str, Any] = {"lease_ttl_ms": 1_500, "lease_renew_ms": 300}
    return EngineSettings(postgres_dsn=SecretStr(dsn), nats_servers=nats_url, **quick, **changes)


async def state_at_last(options: DialOptions) -> str:
    """The state, once the engine has had time to lead."""
    async with asyncio.timeout(20):
        while True:
            state = await asyncio.to_thread(state_behind, options, timeout_s=5)
            if state != "NOT_SERVING":
                return state
            await asyncio.sleep(0.1)


async def test_an_engine_without_certificate_tells_its_health_plainly(store_dsn: str, nats_url: str) -> None:
    async with running(compose, settings_for(store_dsn, nats_url)) as address:
        assert await state_at_last(DialOptions(address)) == "SERVING"


async def test_an_engine_with_a_certificate_tells_its_health_to_who_trusts_it(
    store_dsn: str, nats_url: str, house: Authority
) -> None:
    certificate, key = house.issue("server")
    settings = settings_for(store_dsn, nats_url, grpc_certificate=certificate, grpc_key=key)
    async with running(compose, settings) as address:
        assert await state_at_last(DialOptions(address, tls=True, ca=house.file)) == "SERVING"
        assert await asyncio.to_thread(state_of, address) == UNREACHABLE


async def test_an_engine_may_want_a_certificate_of_who_asks(store_dsn: str, nats_url: str, house: Authority) -> None:
    certificate, key = house.issue("server")
    ours = house.issue("probe")
    settings = settings_for(store_dsn, nats_url, grpc_certificate=certificate, grpc_key=key, grpc_client_ca=house.file)
    async with running(compose, settings) as address:
        known = DialOptions(address, tls=True, ca=house.file, certificate=ours[0], key=ours[1])
        assert await state_at_last(known) == "SERVING"
        stranger = DialOptions(address, tls=True, ca=house.file)
        assert await asyncio.to_thread(state_behind, stranger, timeout_s=1) == UNREACHABLE

        probe = ["health", address, "--ca", str(house.file), "--certificate", str(ours[0]), "--key", str(ours[1])]
        assert (await asyncio.to_thread(CliRunner().invoke, app, probe)).output == "SERVING\n"


def test_a_probe_without_its_authority_says_so(tmp_path: Path) -> None:
    asked = CliRunner().invoke(app, ["health", "127.0.0.1:1", "--ca", str(tmp_path / "missing.pem")])

    assert asked.exit_code == 1
    assert "missing.pem" in asked.output
