"""`gouji ratings` and `gouji facts`, on a database of their own."""

import asyncio
from uuid import uuid4

import psycopg
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from deploy.local.nats_server import NatsServer
from deploy.local.process import LOOPBACK, free_port
from engine.runtime import postgres, subjects
from engine.runtime.bus import FactMessage
from engine.runtime.bus_nats import NatsBus, NatsOptions
from services.cli.main import app
from services.ranking.main import new_intake
from tests.fixtures.facts import Table, delivered

run = CliRunner().invoke

SIX = tuple("abcdef")


def take(dsn: str, *facts: FactMessage) -> None:
    async def taking() -> None:
        async with postgres.pool(dsn, "ranking") as pool:
            intake = new_intake(pool, CollectorRegistry())
            for fact in facts:
                await intake.take(fact)

    asyncio.run(taking())


def test_a_rating_that_differs_from_the_journal_is_mended(database: str) -> None:
    take(database, delivered(Table(uuid4(), SIX).deal([0, 1, 2, 3, 4, 5])))
    with psycopg.connect(database) as connection:
        connection.execute("update ranking.rating set mu = 99 where player_id = 'a'")

    assert run(app, ["ratings", "--dsn", database]).output == "1 results, 6 players, 1 mended\n"
    assert run(app, ["ratings", "--dsn", database]).output == "1 results, 6 players, 0 mended\n"


def test_ratings_can_be_forgotten_and_so_is_what_was_told_of_them(
    database: str, nats_server: NatsServer, nats_url: str
) -> None:
    take(database, delivered(Table(uuid4(), SIX).deal([0, 1, 2, 3, 4, 5])))
    operator = {
        "GOUJI_NATS_SERVERS": nats_server.address,
        "GOUJI_NATS_USER": "operator",
        "GOUJI_NATS_PASSWORD": nats_server.password("operator"),
    }

    async def told() -> FactMessage | None:
        bus = await NatsBus.connect(NatsOptions((nats_url,)))
        await bus.publish_fact(subjects.fact(uuid4()), b"of a table", event_id="one")
        last = await bus.last_fact(subjects.rating("a"))
        if last is None:
            await bus.publish_fact(subjects.rating("a"), b"once told", event_id="two")
        await bus.close()
        return last

    assert asyncio.run(told()) is None
    assert run(app, ["ratings", "--from-stream", "--dsn", database], env=operator).exit_code == 0

    assert asyncio.run(told()) is None
    assert run(app, ["ratings", "--dsn", database]).output == "0 results, 0 players, 0 mended\n"


def test_ratings_are_not_forgotten_while_the_bus_is_out_of_reach(database: str) -> None:
    take(database, delivered(Table(uuid4(), SIX).deal([0, 1, 2, 3, 4, 5])))
    nowhere = {"GOUJI_NATS_SERVERS": f"{LOOPBACK}:{free_port()}"}

    refused = run(app, ["ratings", "--from-stream", "--dsn", database], env=nowhere)

    assert (refused.exit_code, "bus cannot be reached" in refused.output) == (1, True)
    assert run(app, ["ratings", "--dsn", database]).output == "1 results, 6 players, 0 mended\n"


def test_parked_facts_are_listed_and_released(database: str) -> None:
    table = Table(uuid4(), SIX)
    first, second = (delivered(table.deal([0, 1, 2, 3, 4, 5]), sequence=n) for n in (1, 2))
    take(database, second)

    listed = run(app, ["facts", "ranking", "--dsn", database])
    assert listed.exit_code == 1
    assert f"{table.subject} 2: position 2 after 0" in listed.output

    take(database, first)
    listed = run(app, ["facts", "ranking", "--dsn", database, "--release", table.subject])
    assert (listed.exit_code, listed.output) == (0, "0 released\n")


def test_a_source_that_is_still_poisoned_stays_parked(database: str) -> None:
    table = Table(uuid4(), SIX)
    take(database, delivered(table.deal([9, 9, 9, 9, 9, 9])))

    listed = run(app, ["facts", "ranking", "--dsn", database, "--release", table.subject])

    assert listed.exit_code == 1
    assert "0 released\n" in listed.output


def test_without_a_database_nothing_is_promised() -> None:
    assert run(app, ["ratings", "--dsn", "host=127.0.0.1 port=1"]).exit_code == 1
