import shutil
from pathlib import Path

import psycopg
import pytest

from deploy.local.postgres_server import ENV_BINARIES, PostgresServer, binaries
from deploy.local.process import ServerFailed

CONFIG = Path(__file__).parent.parent.parent / "deploy" / "postgres" / "postgresql.conf"


def test_a_killed_server_comes_back_with_everything_that_was_committed(
    postgres_server: PostgresServer, empty_database: str
) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (value int)")
        connection.execute("INSERT INTO kept VALUES (6)")

    postgres_server.kill()
    assert not postgres_server.is_running()
    postgres_server.start()

    with psycopg.connect(empty_database) as connection:
        assert connection.execute("SELECT value FROM kept").fetchall() == [(6,)]


def test_a_server_that_an_earlier_supervisor_left_behind_is_replaced(server_folder: Path) -> None:
    orphaned = PostgresServer(server_folder / "orphaned")
    orphaned.start()
    successor = PostgresServer(server_folder / "orphaned")

    successor.start()

    assert not orphaned.is_running()
    assert successor.is_running()
    successor.stop()


def test_nobody_connects_without_the_password(postgres_server: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(postgres_server.dsn(password="wrong"))


def test_missing_binaries_are_answered_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.local.postgres_server.find_spec", lambda _: None)

    with pytest.raises(ServerFailed, match=ENV_BINARIES):
        binaries()


def test_other_binaries_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV_BINARIES, "/opt/postgres/bin")

    assert binaries() == Path("/opt/postgres/bin")


def test_the_configuration_of_a_house_is_one_that_the_server_takes(server_folder: Path) -> None:
    config = str(shutil.copy(CONFIG, server_folder / "house.conf"))
    server = PostgresServer(server_folder / "house", settings={"config_file": config, "shared_buffers": "64MB"})

    server.start()

    with psycopg.connect(server.dsn()) as connection:
        taken = connection.execute("select name, setting from pg_settings where sourcefile = %s", [config]).fetchall()
    assert ("max_wal_size", "4096") in taken
    assert ("fsync", "on") in taken
    server.stop()
