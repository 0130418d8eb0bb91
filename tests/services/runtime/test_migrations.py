"""Migrations of real databases."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
import sqlalchemy.exc

from engine.runtime import migrations
from engine.runtime.faults import Unavailable

SCRIPT = '''"""{revision}."""

from alembic import op

revision = "{revision}"
down_revision = {down!r}


def upgrade() -> None:
    op.execute("""{statement}""")
'''

FIRST = ("0001", None, "create table thing (id int primary key)")
SECOND = ("0002", "0001", "alter table thing add column name text")
BROKEN = ("0002", "0001", "alter table no_such_thing add column name text")
SLOW = ("0002", "0001", "create table second (id int); select pg_sleep(0.5)")

Version = tuple[str, str | None, str]


def folder_of(path: Path, *versions: Version) -> Path:
    (path / "versions").mkdir(parents=True, exist_ok=True)
    for revision, down, statement in versions:
        text = SCRIPT.format(revision=revision, down=down, statement=statement)
        (path / "versions" / f"{revision}_step.py").write_text(text)
    return path


def tables(dsn: str, schema: str) -> set[str]:
    query = "select table_name from information_schema.tables where table_schema = %s"
    with psycopg.connect(dsn) as connection:
        return {name for (name,) in connection.execute(query, (schema,)).fetchall()}


def test_an_upgrade_applies_what_is_pending_and_nothing_twice(database: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, FIRST)
    migrations.upgrade(database, folder, "one")
    folder_of(tmp_path, SECOND)
    assert migrations.pending(database, folder, "one") == ["0002"]

    migrations.upgrade(database, folder, "one")
    migrations.upgrade(database, folder, "one")

    assert migrations.pending(database, folder, "one") == []
    assert tables(database, "one") == {"thing", "alembic_version"}


def test_asking_what_is_pending_changes_nothing(database: str, tmp_path: Path) -> None:
    assert migrations.pending(database, folder_of(tmp_path, FIRST, SECOND), "one") == ["0001", "0002"]
    assert tables(database, "one") == set()


def test_each_schema_is_on_its_own(database: str, tmp_path: Path) -> None:
    one = folder_of(tmp_path / "one", FIRST)
    two = folder_of(tmp_path / "two", ("0001", None, "create table thing (name text)"))

    migrations.upgrade(database, one, "one")

    assert migrations.pending(database, two, "two") == ["0001"]
    migrations.upgrade(database, two, "two")
    assert tables(database, "one") == tables(database, "two") == {"thing", "alembic_version"}


def test_a_script_that_fails_leaves_everything_as_it_was(database: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, FIRST, BROKEN)

    with pytest.raises(sqlalchemy.exc.ProgrammingError):
        migrations.upgrade(database, folder, "one")

    assert migrations.pending(database, folder, "one") == ["0001", "0002"]
    assert tables(database, "one") == {"alembic_version"}


def test_migrators_in_many_processes_apply_each_version_once(database: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, FIRST, SLOW)
    program = "import sys, pathlib; from engine.runtime import migrations; "
    program += "migrations.upgrade(sys.argv[1], pathlib.Path(sys.argv[2]), 'one')"
    children = [subprocess.Popen([sys.executable, "-c", program, database, str(folder)]) for _ in range(4)]

    assert [child.wait(timeout=60) for child in children] == [0, 0, 0, 0]
    assert migrations.pending(database, folder, "one") == []


def test_migrators_in_many_threads_apply_each_version_once(database: str, tmp_path: Path) -> None:
    schemas = ["one", "two", "three"] * 3
    folders = {schema: folder_of(tmp_path / schema, FIRST, SLOW) for schema in set(schemas)}

    with ThreadPoolExecutor(len(schemas)) as threads:
        list(threads.map(lambda schema: migrations.upgrade(database, folders[schema], schema), schemas))

    assert all(migrations.pending(database, folder, schema) == [] for schema, folder in folders.items())


def test_what_is_pending_can_be_asked_while_somebody_migrates(database: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, FIRST)
    migrations.upgrade(database, folder, "one")
    folder_of(tmp_path, SLOW)

    with ThreadPoolExecutor(1) as threads:
        upgrading = threads.submit(migrations.upgrade, database, folder, "one")
        time.sleep(0.2)
        assert migrations.pending(database, folder, "one") == ["0002"]
        assert not upgrading.done()
        upgrading.result()


def test_an_older_release_finds_nothing_pending_and_migrates_nothing(database: str, tmp_path: Path) -> None:
    newer, older = folder_of(tmp_path / "newer", FIRST, SECOND), folder_of(tmp_path / "older", FIRST)
    migrations.upgrade(database, newer, "one")

    assert migrations.pending(database, older, "one") == []
    with pytest.raises(migrations.SchemaAhead):
        migrations.upgrade(database, older, "one")


def test_a_schema_may_have_any_name(database: str, tmp_path: Path) -> None:
    migrations.upgrade(database, folder_of(tmp_path, FIRST), 'An "odd" name')

    assert "thing" in tables(database, 'An "odd" name')


def test_a_database_out_of_reach_is_told(tmp_path: Path) -> None:
    folder, nowhere = folder_of(tmp_path, FIRST), "host=127.0.0.1 port=1 connect_timeout=2"

    with pytest.raises(Unavailable):
        migrations.upgrade(nowhere, folder, "one")
    with pytest.raises(Unavailable):
        migrations.pending(nowhere, folder, "one")
