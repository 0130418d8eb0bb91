import json
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from deploy import schemas
from deploy.local.environment import SERVICES
from deploy.local.nats_server import USERS

DEPLOY = Path(__file__).parent.parent.parent / "deploy"


def program(name: str) -> str:
    found = shutil.which(name, path=sysconfig.get_path("scripts"))
    assert found, f"{name} belongs to the development tools"
    return found


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    """The compose file as Docker Compose reads it, with the example's values."""
    files = ["--env-file", str(DEPLOY / "compose.env.example"), "-f", str(DEPLOY / "compose.yaml")]
    command = [program("docker-compose"), *files, "config", "--format", "json"]
    read = subprocess.run(command, capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    services: dict[str, Any] = json.loads(read.stdout)["services"]
    return services


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_is_composed_with_a_health_check(composed: dict[str, Any], service: str) -> None:
    assert composed[service]["command"] == ["serve", service]
    assert composed[service]["healthcheck"]["test"][1:3] == ["gouji", "health"]


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_has_its_own_accounts_and_nobody_elses(composed: dict[str, Any], service: str) -> None:
    environment = composed[service]["environment"]

    assert environment["GOUJI_NATS_USER"] == service
    if service in schemas.SCHEMAS:
        assert f"user={schemas.role(service)} " in environment["GOUJI_POSTGRES_DSN"]
    else:
        assert "GOUJI_POSTGRES_DSN" not in environment


def test_no_service_starts_before_the_schema_is_there(composed: dict[str, Any]) -> None:
    waits = {name: composed[name]["depends_on"]["migrate"]["condition"] for name in SERVICES}

    assert set(waits.values()) == {"service_completed_successfully"}


def test_nothing_that_players_reach_runs_with_rights(composed: dict[str, Any]) -> None:
    for service in SERVICES:
        assert composed[service]["read_only"]
        assert composed[service]["cap_drop"] == ["ALL"]


def test_nats_gets_a_password_for_each_of_its_users(composed: dict[str, Any]) -> None:
    assert set(composed["nats"]["environment"]) == {f"GOUJI_NATS_{user.upper()}_PASSWORD" for user in USERS}


def test_without_secrets_nothing_is_composed() -> None:
    command = [program("docker-compose"), "-f", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
    read = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})

    assert read.returncode != 0
    assert "GOUJI_" in read.stderr


def test_the_image_follows_good_practice() -> None:
    checked = subprocess.run(
        [program("hadolint"), str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout


def test_the_image_runs_as_nobody_special() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()

    assert [line for line in lines if line.startswith("USER ")] == ["USER 10001"]
