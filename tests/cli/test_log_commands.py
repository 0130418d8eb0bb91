import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from deploy.local.process import LOOPBACK, free_port
from engine.store.archive import day_of
from engine.store.partitions import make_partitions
from engine.store.postgres import PostgresEventStore
from services.cli.main import app
from tests.support.stored_tables import store_match
from tests.support.streams import append, table_id
from tests.support.tables import TABLE_ID

TODAY = datetime.now(UTC).date()
NOWHERE = f"host={LOOPBACK} port={free_port()} connect_timeout=2"

run = CliRunner().invoke


def test_partitions_says_which_days_it_made_room_for(database: str) -> None:
    last = TODAY + timedelta(days=14)
    with psycopg.connect(database) as owner:
        owner.execute(f"drop table engine.event_{last:%Y%m%d}".encode())

    made = run(app, ["partitions", "--dsn", database])
    again = run(app, ["partitions", "--dsn", database])

    assert (made.exit_code, made.output.strip()) == (0, f"made {last.isoformat()}")
    assert (again.exit_code, again.output) == (0, "")


def test_partitions_says_when_the_database_is_out_of_reach() -> None:
    refused = run(app, ["partitions", "--dsn", NOWHERE])

    assert refused.exit_code == 1
    assert "cannot be reached" in refused.output


def in_store(dsn: str, work: Callable[[PostgresEventStore], Awaitable[object]]) -> None:
    """Do something with the store of this database."""

    async def do() -> None:
        store = await PostgresEventStore.open(dsn)
        await work(store)
        await store.close()

    asyncio.run(do())


@pytest.fixture
def played(database: str) -> str:
    """A database with a match that was played on an old day."""
    make_partitions(database, day_of(TABLE_ID), 0)
    in_store(database, store_match)
    return database


def test_an_archived_and_dropped_table_replays_as_before(played: str, tmp_path: Path) -> None:
    before = run(app, ["replay", str(TABLE_ID), "--dsn", played])

    written = run(app, ["archive", "write", "--dsn", played, "--to", str(tmp_path), "--drop", "--json"])
    again = run(app, ["archive", "write", "--dsn", played, "--to", str(tmp_path), "--drop"])
    after = run(app, ["replay", str(TABLE_ID), "--archive", str(tmp_path)])

    days = [json.loads(line) for line in written.output.splitlines()]
    assert written.exit_code == 0
    assert [(day["tables"], day["done"]) for day in days] == [(0, "written, dropped"), (1, "written, dropped")]
    assert (again.exit_code, again.output) == (0, "")
    assert before.exit_code == after.exit_code == 0
    assert before.output == after.output
    assert days[1]["events"] == len(after.output.splitlines())


def test_archives_are_listed_and_proved(played: str, tmp_path: Path) -> None:
    run(app, ["archive", "write", "--dsn", played, "--to", str(tmp_path)])
    _, file = files = sorted(tmp_path.iterdir())

    listed = run(app, ["archive", "list", str(tmp_path)])
    proved = run(app, ["archive", "verify", *map(str, files)])
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)
    damaged = run(app, ["archive", "verify", *map(str, files), "--json"])

    assert [line.split()[0] for line in listed.output.splitlines()] == list(map(str, files))
    assert (proved.exit_code, proved.output.count("proved")) == (0, 2)
    assert damaged.exit_code == 1
    assert [bool(json.loads(line)["damage"]) for line in damaged.output.splitlines()] == [False, True]


def test_a_day_with_an_open_table_is_left_and_the_others_are_archived(played: str, tmp_path: Path) -> None:
    open_table = table_id(at_ms=(TABLE_ID.int >> 80) - 86_400_000)
    in_store(played, lambda store: store.append(append(open_table)))

    written = run(app, ["archive", "write", "--dsn", played, "--to", str(tmp_path), "--drop"])

    assert written.exit_code == 1
    assert str(open_table) in written.output
    assert [path.name for path in tmp_path.iterdir()] == [f"log-{day_of(TABLE_ID)}.archive"]


def test_only_days_before_the_given_one_are_archived(played: str, tmp_path: Path) -> None:
    wanted = ["--before", day_of(TABLE_ID).isoformat()]

    run(app, ["archive", "write", "--dsn", played, "--to", str(tmp_path), *wanted])

    assert [path.name for path in tmp_path.iterdir()] == [f"log-{day_of(TABLE_ID) - timedelta(days=1)}.archive"]


def test_an_archive_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    refused = run(app, ["archive", "write", "--dsn", NOWHERE, "--to", str(tmp_path)])

    assert refused.exit_code == 1
    assert "error" in refused.output


def test_a_replay_wants_a_database_or_an_archive_that_has_the_table(tmp_path: Path) -> None:
    assert run(app, ["replay", str(TABLE_ID)], env={"GOUJI_POSTGRES_DSN": None}).exit_code == 2
    missing = run(app, ["replay", str(TABLE_ID), "--archive", str(tmp_path)])

    assert (missing.exit_code, "no table" in missing.output) == (1, True)
