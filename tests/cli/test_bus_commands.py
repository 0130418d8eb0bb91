import asyncio
import json

import pytest
from typer.testing import CliRunner

from deploy.local.nats_server import NatsServer
from deploy.local.process import LOOPBACK, free_port
from engine.runtime import subjects
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.store.archive import day_of
from engine.store.partitions import make_partitions
from engine.store.postgres import PostgresEventStore
from services.cli.main import app
from tests.support.stored_tables import store_match
from tests.support.tables import TABLE_ID

run = CliRunner().invoke
SINCE = ("--since", day_of(TABLE_ID).isoformat())


@pytest.fixture
def operator(nats_server: NatsServer, nats_url: str, database: str) -> dict[str, str]:
    """An operator's environment: a match in the log, and a bus that has lost everything."""
    make_partitions(database, day_of(TABLE_ID), 0)
    asyncio.run(_store(database))
    assert nats_url
    return {
        "GOUJI_NATS_SERVERS": nats_server.address,
        "GOUJI_NATS_USER": "operator",
        "GOUJI_NATS_PASSWORD": nats_server.password("operator"),
        "GOUJI_POSTGRES_DSN": database,
    }


async def _store(dsn: str) -> None:
    store = await PostgresEventStore.open(dsn)
    await store_match(store)
    await store.close()


async def _foreign(url: str) -> None:
    bus = await NatsBus.connect(NatsOptions((url,)))
    await bus.publish_fact(subjects.fact(TABLE_ID), b"foreign", event_id="foreign")
    await bus.close()


def test_a_bus_that_lost_everything_is_found_and_told_again(operator: dict[str, str]) -> None:
    lost = run(app, ["bus", "check", *SINCE], env=operator)
    told = run(app, ["bus", "rebuild", *SINCE], env=operator)
    again = run(app, ["bus", "rebuild", *SINCE], env=operator)
    whole = run(app, ["bus", "check", *SINCE], env=operator)

    assert lost.exit_code == 1
    assert lost.stdout.splitlines()[0] == f"{TABLE_ID}  missing  log 2  bus 0"
    assert (told.exit_code, told.stdout.strip()) == (0, "tables 1, told 2, whole 1")
    assert (again.exit_code, again.stdout.strip()) == (0, "tables 1, told 0, whole 1")
    assert (whole.exit_code, whole.stdout.strip()) == (0, "tables 1, told 0, whole 1")


def test_a_fork_is_mended_only_by_telling_everything_anew(operator: dict[str, str], nats_url: str) -> None:
    asyncio.run(_foreign(nats_url))

    forked = run(app, ["bus", "rebuild", *SINCE, "--json"], env=operator)
    anew = run(app, ["bus", "rebuild", *SINCE, "--anew", "--json"], env=operator)

    table, counted = map(json.loads, forked.stdout.splitlines())
    assert (forked.exit_code, table["table_id"], table["verdict"]) == (1, str(TABLE_ID), "fork")
    assert counted == {"tables": 1, "told": 0, "fork": 1}
    assert (anew.exit_code, json.loads(anew.stdout)) == (0, {"tables": 1, "told": 2, "whole": 1})


def test_tables_older_than_the_bus_remembers_are_left_alone(operator: dict[str, str]) -> None:
    checked = run(app, ["bus", "check"], env=operator)

    assert (checked.exit_code, checked.stdout.strip()) == (0, "tables 0, told 0")


def test_a_bus_or_database_out_of_reach_is_said(operator: dict[str, str]) -> None:
    nowhere = f"{LOOPBACK}:{free_port()}"
    no_bus = run(app, ["bus", "check", *SINCE], env=operator | {"GOUJI_NATS_SERVERS": nowhere})

    assert no_bus.exit_code == 1
    assert "the bus cannot be reached" in no_bus.output
