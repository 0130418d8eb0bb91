"""The bus over TLS: whom it trusts, and that nobody else learns its password."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr

from deploy.local.nats_server import CONFIG, NatsServer
from deploy.local.process import LOOPBACK
from engine.runtime import parts, subjects
from engine.runtime.bus import BusUnavailable
from engine.runtime.bus_nats import NatsBus
from engine.runtime.settings import BusSettings
from tests.support.authority import Authority

TLS = """
include '{ours}'
tls {{
  cert_file: '{certificate}'
  key_file: '{key}'
  ca_file: '{ca}'
  verify: true
  handshake_first: auto
}}
"""


@pytest.fixture(scope="module")
def folder(server_folder: Path) -> Path:
    folder = server_folder / "nats-tls"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def house(folder: Path) -> Authority:
    return Authority(folder, "house")


@pytest.fixture(scope="module")
def guarded(folder: Path, house: Authority) -> Iterator[NatsServer]:
    """A server with a certificate that wants one of its clients too."""
    certificate, key = house.issue("server")
    config = folder / "tls.conf"
    ours = os.path.relpath(CONFIG, folder)
    config.write_text(TLS.format(ours=ours, certificate=certificate, key=key, ca=house.file))
    server = NatsServer(folder, config=config)
    server.start()
    yield server
    server.stop()


def settings_for(server: NatsServer, authority: Authority, house: Authority, **changes: Any) -> BusSettings:
    """The engine's settings that trust this authority and show a certificate of the house."""
    certificate, key = house.issue("engine")
    settings: dict[str, Any] = {
        "nats_servers": server.address,
        "nats_user": "engine",
        "nats_password": SecretStr(server.password("engine")),
        "nats_ca": authority.file,
        "nats_certificate": certificate,
        "nats_key": key,
    }
    return BusSettings(**settings | changes)


async def connected(settings: BusSettings, within: float = 10.0) -> NatsBus:
    return await NatsBus.connect(replace(parts.reaching_nats(settings, "test"), connect_within=within))


async def is_let_in(settings: BusSettings) -> bool:
    try:
        await (await connected(settings, within=2.0)).close()
    except BusUnavailable:
        return False
    return True


async def test_facts_go_over_tls_with_certificates_on_both_sides(guarded: NatsServer, house: Authority) -> None:
    bus = await connected(settings_for(guarded, house, house))
    subject = subjects.fact(uuid4())

    await bus.publish_fact(subject, b"fact", event_id="one", expected_sequence=0)

    last = await bus.last_fact(subject)
    assert last is not None
    assert last.payload == b"fact"
    await bus.close()


async def test_the_link_is_mended_over_tls_after_the_server_was_killed(guarded: NatsServer, house: Authority) -> None:
    bus = await connected(settings_for(guarded, house, house))

    await asyncio.to_thread(guarded.kill)
    await asyncio.to_thread(guarded.start)

    async with asyncio.timeout(20):
        while not bus.is_connected:  # noqa: ASYNC110 - what is waited for is seen only from outside
            await asyncio.sleep(0.05)
    await bus.publish(subjects.live(uuid4(), "public"), b"shown")
    await bus.close()


async def test_a_server_of_another_authority_is_not_trusted(
    guarded: NatsServer, house: Authority, tmp_path: Path
) -> None:
    assert not await is_let_in(settings_for(guarded, Authority(tmp_path, "stranger"), house))


async def test_a_client_with_a_certificate_of_another_authority_is_turned_away(
    guarded: NatsServer, house: Authority, tmp_path: Path
) -> None:
    assert not await is_let_in(settings_for(guarded, house, Authority(tmp_path, "stranger")))


async def test_a_wrong_password_is_turned_away_over_tls_too(guarded: NatsServer, house: Authority) -> None:
    assert not await is_let_in(settings_for(guarded, house, house, nats_password=SecretStr("guess")))


async def test_a_server_without_tls_does_not_learn_the_password(guarded: NatsServer, house: Authority) -> None:
    said: list[bytes] = []

    async def pose(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"poser","version":"2.15.1","max_payload":1048576,"headers":true}\r\n')
        while piece := await reader.read(4096):
            said.append(piece)
        writer.close()

    poser = await asyncio.start_server(pose, LOOPBACK)
    port = poser.sockets[0].getsockname()[1]

    assert not await is_let_in(settings_for(guarded, house, house, nats_servers=f"nats://{LOOPBACK}:{port}"))
    poser.close()
    assert said
    assert b"CONNECT" not in b"".join(said)
