import json
from pathlib import Path

import jwt
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from deploy import schemas
from deploy.local.environment import token_key
from deploy.local.process import LOOPBACK, free_port
from engine.runtime.clock import SystemClock
from engine.runtime.identity import Role, Verifier, public_key_of
from services.cli.main import app

COMMANDS = sorted(get_command(app).commands)  # type: ignore[attr-defined]

run = CliRunner().invoke


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    shown = run(app, [command, "--help"])

    assert shown.exit_code == 0
    assert "Usage" in shown.output


def test_without_a_command_everything_is_listed() -> None:
    listing = run(app, ["--help"]).output

    assert all(command in listing for command in COMMANDS)


def test_an_unknown_command_is_a_wrong_question() -> None:
    assert run(app, ["fly"]).exit_code == 2


def test_a_token_names_its_player_and_role(tmp_path: Path) -> None:
    key = public_key_of(token_key(tmp_path))

    minted = run(app, ["token", "ada", "--role", "admin", "--data", str(tmp_path)])

    identity = Verifier([key], "gouji", SystemClock()).verify(minted.output.strip())
    assert (identity.subject, identity.role) == ("ada", Role.ADMIN)


def test_a_token_lasts_as_long_as_was_asked(tmp_path: Path) -> None:
    token_key(tmp_path)

    minted = run(app, ["token", "ada", "--hours", "2", "--data", str(tmp_path)]).output.strip()

    claims = jwt.decode(minted, options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == 7200


def test_there_is_no_token_without_an_installation(tmp_path: Path) -> None:
    refused = run(app, ["token", "ada", "--data", str(tmp_path)])

    assert refused.exit_code == 1
    assert "gouji up" in refused.output


def test_an_unknown_role_is_a_wrong_question(tmp_path: Path) -> None:
    token_key(tmp_path)

    assert run(app, ["token", "ada", "--role", "king", "--data", str(tmp_path)]).exit_code == 2


def test_migrate_tells_what_it_did_and_then_that_nothing_is_left(empty_database: str) -> None:
    first = run(app, ["migrate", "--dsn", empty_database, "--json"])
    second = run(app, ["migrate", "--dsn", empty_database])

    assert list(json.loads(first.output)) == sorted(schemas.SCHEMAS)
    assert (second.exit_code, second.output.strip()) == (0, "up to date")


def test_a_check_changes_nothing_and_fails_while_something_is_missing(empty_database: str) -> None:
    assert run(app, ["migrate", "--dsn", empty_database, "--check"]).exit_code == 1
    assert schemas.pending(empty_database)


def test_a_check_passes_when_nothing_is_missing(database: str) -> None:
    assert run(app, ["migrate", "--dsn", database, "--check"]).exit_code == 0


def test_migrate_says_when_the_database_is_out_of_reach() -> None:
    refused = run(app, ["migrate", "--dsn", f"host={LOOPBACK} port={free_port()} connect_timeout=2"])

    assert refused.exit_code == 1
    assert "cannot be reached" in refused.output


def test_health_of_nobody_is_a_failure() -> None:
    asked = run(app, ["health", f"{LOOPBACK}:{free_port()}", "--timeout", "1"])

    assert (asked.exit_code, asked.output.strip()) == (1, "UNREACHABLE")
