from datetime import UTC, datetime, timedelta

import psycopg
from typer.testing import CliRunner

from deploy.local.process import LOOPBACK, free_port
from services.cli.main import app

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
