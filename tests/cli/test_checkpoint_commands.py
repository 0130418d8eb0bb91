"""`gouji checkpoint`, on a database of its own."""

import asyncio
import json
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from engine.runtime.identity import new_keys
from engine.store.archive import day_of
from engine.store.partitions import make_partitions
from engine.store.postgres import PostgresEventStore
from services.cli.main import app
from tests.support.stored_tables import store_match
from tests.support.tables import TABLE_ID

run = CliRunner().invoke


@pytest.fixture
def log(database: str) -> str:
    """A database with a match in its log."""
    make_partitions(database, day_of(TABLE_ID), 0)
    asyncio.run(_store(database))
    return database


async def _store(dsn: str) -> None:
    store = await PostgresEventStore.open(dsn)
    await store_match(store)
    await store.close()


def test_who_owns_the_database_cannot_change_what_was_signed(log: str, tmp_path: Path) -> None:
    private, public, file = tmp_path / "key.pem", tmp_path / "key.pub", tmp_path / "checkpoint"
    for path, key in zip((private, public), new_keys(), strict=True):
        path.write_bytes(key)
    verify = ["checkpoint", "verify", str(file), "--dsn", log, "--key", str(public)]

    written = run(app, ["checkpoint", "write", "--dsn", log, "--key", str(private), "--to", str(file)])
    again = run(app, ["checkpoint", "write", "--dsn", log, "--key", str(private), "--to", str(file)])
    same = run(app, verify)
    with psycopg.connect(log) as owner:
        owner.execute(
            "update engine.event set hash = sha256(hash) where version = (select max(version) from engine.event)"
        )
    changed = run(app, verify)
    for_scripts = run(app, [*verify, "--json"])
    file.write_text(file.read_text().replace("at 1", "at 2"))
    unsigned = run(app, verify)

    assert (written.exit_code, written.stdout.strip()) == (0, "1 tables")
    assert again.exit_code == 1
    assert (same.exit_code, same.stdout.strip()) == (0, "tables 1, same 1")
    assert (changed.exit_code, changed.stdout.split()[:2]) == (1, [str(TABLE_ID), "changed"])
    finding, counted = map(json.loads, for_scripts.stdout.splitlines())
    assert (finding["table_id"], finding["verdict"], counted) == (str(TABLE_ID), "changed", {"tables": 1, "changed": 1})
    assert (unsigned.exit_code, "signature" in unsigned.output) == (1, True)
