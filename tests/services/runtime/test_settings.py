"""Settings from the environment and from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from engine.runtime.identity import new_keys
from engine.runtime.settings import (
    BusSettings,
    GrpcSettings,
    ListenSettings,
    PostgresSettings,
    ProcessSettings,
    pem_blocks,
)


class Whole(BusSettings, PostgresSettings):
    pass


def whole() -> Whole:
    return Whole()  # type: ignore[call-arg]


def test_the_environment_sets_what_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOUJI_ENVIRONMENT", "production")
    monkeypatch.setenv("GOUJI_GRACE", "3.5")

    settings = ProcessSettings()

    assert (settings.is_production, settings.grace) == (True, 3.5)


def test_parts_join_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOUJI_POSTGRES_DSN", "host=here")
    monkeypatch.setenv("GOUJI_NATS_REPLICAS", "3")

    assert (whole().postgres_dsn.get_secret_value(), whole().nats_replicas) == ("host=here", 3)


def test_a_secret_can_be_kept_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dsn").write_text("host=there password=p w\n")
    monkeypatch.setenv("GOUJI_POSTGRES_DSN_FILE", str(tmp_path / "dsn"))

    assert whole().postgres_dsn.get_secret_value() == "host=there password=p w"


def test_the_environment_comes_before_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dsn").write_text("host=there")
    monkeypatch.setenv("GOUJI_POSTGRES_DSN_FILE", str(tmp_path / "dsn"))
    monkeypatch.setenv("GOUJI_POSTGRES_DSN", "host=here")

    assert whole().postgres_dsn.get_secret_value() == "host=here"


def test_a_secret_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOUJI_POSTGRES_DSN", "password=hush")
    monkeypatch.setenv("GOUJI_NATS_PASSWORD", "hush")

    assert "hush" not in f"{whole()!r} {whole()}"


def test_a_secret_has_no_default() -> None:
    with pytest.raises(ValidationError, match="postgres_dsn"):
        whole()


def test_a_file_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOUJI_POSTGRES_DSN_FILE", str(tmp_path / "missing"))

    with pytest.raises(FileNotFoundError):
        whole()


@pytest.mark.parametrize(("name", "value"), [("GRPC_PORT", "65536"), ("PLAYER_RATE", "0"), ("LOG_LEVEL", "LOUD")])
def test_a_value_out_of_bounds_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"GOUJI_{name}", value)

    with pytest.raises(ValidationError, match=name.lower()):
        GrpcSettings(token_public_keys="")


@pytest.mark.parametrize("half", [{"grpc_certificate": "c.pem"}, {"grpc_key": "k.pem"}, {"grpc_client_ca": "ca.pem"}])
def test_half_a_certificate_is_refused_rather_than_served_plainly(half: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="certificate"):
        ListenSettings(**half)


@pytest.mark.parametrize(
    "half", [{"nats_certificate": "c.pem", "nats_ca": "ca.pem"}, {"nats_key": "k.pem", "nats_ca": "ca.pem"}]
)
def test_half_a_certificate_for_the_bus_is_refused(half: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="bus"):
        BusSettings(**half)


def test_a_certificate_for_a_bus_without_tls_is_refused() -> None:
    with pytest.raises(ValidationError, match="authority"):
        BusSettings(nats_certificate=Path("c.pem"), nats_key=Path("k.pem"))


def test_trusted_proxies_are_networks() -> None:
    settings = GrpcSettings(token_public_keys="", trusted_proxies="10.0.0.0/8, fd00::/8")

    assert [str(network) for network in settings.proxies()] == ["10.0.0.0/8", "fd00::/8"]


def test_several_keys_are_told_apart() -> None:
    keys = [new_keys()[1], new_keys()[1]]

    assert [block.strip() for block in pem_blocks(b"\n".join(keys).decode())] == [key.strip() for key in keys]
