"""What only the event store on Postgres promises: grants, partitions, migrations, bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import conninfo

from deploy.local.postgres_server import PostgresServer
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.migrations import pending, upgrade
from engine.service.main import open_store
from engine.service.settings import EngineSettings
from engine.store import prepared, sessions
from engine.store.append import Terms
from engine.store.partitions import AHEAD, first_id, make_partitions
from engine.store.port import Appended, Deadline, NotTheLeader, StoreUnavailable
from engine.store.postgres import HEAD, MIGRATIONS, SCHEMA, Pool, PostgresEventStore, UnmigratedStore, VolatileStore
from engine.store.sessions import Connection, bounded
from tests.support.streams import append, event, fact, table_id

TODAY = datetime.now(tz=UTC).date()
PASSWORD = "engine"
TABLES = ("stream", "event", "outbox", "lease", "contender")


@pytest.fixture
def engine_login(postgres_server: PostgresServer, database: str) -> str:
    """The dsn of a user who is nothing but a member of the engine's role."""
    with psycopg.connect(database) as owner:
        owner.execute("drop role if exists gouji_engine_login")
        owner.execute(f"create role gouji_engine_login login password '{PASSWORD}' in role gouji_engine")
        name = owner.info.dbname
    return postgres_server.dsn(name, user="gouji_engine_login", password=PASSWORD)


# Grants


async def test_the_engines_role_can_do_all_that_the_store_does(engine_login: str) -> None:
    store = await PostgresEventStore.open(engine_login)
    table = table_id(5)
    await store.append(append(table, 0, outbox=(fact(1),)))
    await store.append(append(table, 1))
    await store.claim(table, 2)
    with pytest.raises(NotTheLeader):
        await store.append(append(table, 2))
    assert len(await store.read(table)) == 2
    assert len(await store.pending_facts([5], 10)) == 1
    await store.mark_published(table, 1)
    assert len(await store.list_streams(10)) == 1
    assert len((await store.keep_leases("a", 7, 1000)).held) == 7
    await store.release_leases("a")
    assert await store.partition_days_ahead(TODAY) == AHEAD
    await store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "update engine.event set payload = ''",
        "update engine.event set version = 7 where version = 1",
        "delete from engine.event",
        "truncate engine.event",
        "drop table engine.event",
        "alter table engine.event add column note text",
        "delete from engine.stream",
        "truncate engine.stream",
        "truncate engine.outbox",
        "delete from engine.lease",
        "insert into engine.lease (shard) values (1)",
        "create table engine.other ()",
        "update engine.alembic_version set version_num = '9999'",
    ],
)
def test_the_engines_role_cannot_touch_what_is_in_the_log(engine_login: str, statement: str) -> None:
    with psycopg.connect(engine_login) as login, pytest.raises(psycopg.errors.InsufficientPrivilege):
        login.execute(statement.encode())


def test_the_engines_role_cannot_touch_a_partition(engine_login: str) -> None:
    partition = f"engine.event_{TODAY:%Y%m%d}"
    for verb in ("delete from", "truncate", "drop table", "insert into"):
        rest = " default values" if verb == "insert into" else ""
        with psycopg.connect(engine_login) as login, pytest.raises(psycopg.errors.InsufficientPrivilege):
            login.execute(f"{verb} {partition}{rest}".encode())


def test_the_schema_has_nothing_that_cannot_be_spread_by_shard(database: str) -> None:
    with psycopg.connect(database) as owner:
        functions = owner.execute("select proname from pg_proc where pronamespace = 'engine'::regnamespace").fetchall()
        triggers = owner.execute(
            """
            select tgname from pg_trigger
            join pg_class on pg_class.oid = tgrelid and relnamespace = 'engine'::regnamespace
            """
        ).fetchall()
        relations = owner.execute(
            "select relname from pg_class where relnamespace = 'engine'::regnamespace and relkind = 'S'"
        ).fetchall()
        references = owner.execute(
            "select conname from pg_constraint where contype = 'f' and connamespace = 'engine'::regnamespace"
        ).fetchall()
        keys = owner.execute(
            """
            select indrelid::regclass::text, attname from pg_index
            join pg_class on pg_class.oid = indrelid and relnamespace = 'engine'::regnamespace
            join pg_attribute on attrelid = indrelid and attnum = indkey[0]
            where indisunique
            """
        ).fetchall()
    assert [functions, triggers, relations, references] == [[], [], [], []]
    others = {"engine.contender", "engine.alembic_version"}
    assert {column for relation, column in keys if relation not in others} == {"shard"}


# Migrations


async def test_an_empty_database_is_refused(empty_database: str) -> None:
    with pytest.raises(UnmigratedStore):
        await PostgresEventStore.open(empty_database)


async def test_a_database_of_an_older_release_is_refused(database: str) -> None:
    with psycopg.connect(database) as owner:
        owner.execute("update engine.alembic_version set version_num = '0000'")

    with pytest.raises(UnmigratedStore):
        await PostgresEventStore.open(database)


async def test_a_database_that_forgets_is_refused_where_people_rely_on_it(database: str) -> None:
    """That of tests does not wait for the disk."""
    hasty = conninfo.make_conninfo(database, options="-c synchronous_commit=off")

    with pytest.raises(VolatileStore, match=r"^fsync, full_page_writes, synchronous_commit$"):
        await PostgresEventStore.open(hasty, must_last=True)
    await (await PostgresEventStore.open(hasty)).close()


async def test_an_engine_in_production_refuses_a_database_that_forgets(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOUJI_POSTGRES_DSN", database)
    monkeypatch.setenv("GOUJI_ENVIRONMENT", "production")

    with pytest.raises(VolatileStore):
        await open_store(Lifecycle(), EngineSettings())  # type: ignore[call-arg]  # the environment gives the rest


async def test_a_database_of_a_newer_release_is_served(database: str) -> None:
    with psycopg.connect(database) as owner:
        owner.execute("update engine.alembic_version set version_num = '9999'")

    await (await PostgresEventStore.open(database)).close()


async def test_a_server_that_is_not_there_is_unavailable(postgres_server: PostgresServer) -> None:
    nowhere = conninfo.make_conninfo(postgres_server.dsn(), port=1)

    with pytest.raises(StoreUnavailable):
        await PostgresEventStore.open(nowhere, pool=Pool(patience_s=0.2))


def test_the_store_needs_its_newest_migration() -> None:
    assert max(script.name for script in Path(MIGRATIONS, "versions").glob("*.py")).startswith(HEAD)


def test_two_databases_of_a_server_are_migrated_at_once(postgres_server: PostgresServer) -> None:
    names = [f"migrated_{number}" for number in range(2)]
    dsns = [postgres_server.create_database(name) for name in names]

    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda dsn: upgrade(dsn, MIGRATIONS, SCHEMA), dsns * 2))

    assert [pending(dsn, MIGRATIONS, SCHEMA) for dsn in dsns] == [[], []]
    for name in names:
        postgres_server.drop_database(name)


# Partitions


async def test_partitions_are_made_two_weeks_ahead_and_once(empty_database: str) -> None:
    upgrade(empty_database, MIGRATIONS, SCHEMA)
    store = await PostgresEventStore.open(empty_database)
    assert await store.partition_days_ahead(TODAY) == -1

    made = make_partitions(empty_database, TODAY)

    assert made == tuple(TODAY + timedelta(days=offset) for offset in range(-1, 15))
    assert make_partitions(empty_database, TODAY) == ()
    assert await store.partition_days_ahead(TODAY) == 14
    assert await store.partition_days_ahead(TODAY + timedelta(days=10)) == 4
    assert make_partitions(empty_database, TODAY + timedelta(days=1)) == (TODAY + timedelta(days=15),)
    await store.close()


def test_two_makers_of_partitions_do_not_disturb_each_other(empty_database: str) -> None:
    upgrade(empty_database, MIGRATIONS, SCHEMA)

    with ThreadPoolExecutor() as threads:
        rounds = list(threads.map(lambda _: make_partitions(empty_database, TODAY), range(4)))

    assert sorted(map(len, rounds)) == [0, 0, 0, 16]


async def test_partitions_are_made_while_appends_go_on(database: str) -> None:
    store = await PostgresEventStore.open(database)
    ahead = asyncio.to_thread(make_partitions, database, TODAY, 40)

    appends = asyncio.gather(*(store.append(append(table_id())) for _ in range(30)))
    made, answers = await asyncio.gather(ahead, appends)

    assert len(made) == 26
    assert len(answers) == 30
    await store.close()


def test_a_day_of_ids_begins_with_its_first_millisecond() -> None:
    assert first_id(date(1970, 1, 1)) == UUID(int=0)
    assert first_id(date(1970, 1, 2)).int >> 80 == 86_400_000
    assert first_id(TODAY) <= table_id() < first_id(TODAY + timedelta(days=1))


async def test_a_table_of_a_day_without_partition_fails_for_itself_alone(postgres_store: PostgresEventStore) -> None:
    far = int((datetime.now(tz=UTC) + timedelta(days=99)).timestamp() * 1000)
    tables = [table_id(1), table_id(1, at_ms=far), table_id(1)]

    answers = await asyncio.gather(*(postgres_store.append(append(one)) for one in tables), return_exceptions=True)

    assert [type(answer) for answer in answers] == [Appended, StoreUnavailable, Appended]
    assert {head.table_id for head in await postgres_store.list_streams(10)} == {tables[0], tables[2]}


async def test_a_long_lived_table_stays_in_the_partition_of_its_first_day(
    store_dsn: str, postgres_store: PostgresEventStore
) -> None:
    yesterday = datetime.combine(TODAY, datetime.min.time(), tzinfo=UTC) - timedelta(seconds=1)
    table = table_id(at_ms=int(yesterday.timestamp() * 1000))
    await postgres_store.append(append(table))
    await postgres_store.append(append(table, 1))

    with psycopg.connect(store_dsn) as owner:
        partitions = owner.execute("select distinct tableoid::regclass::text from engine.event").fetchall()
    assert partitions == [(f"engine.event_{TODAY - timedelta(days=1):%Y%m%d}",)]


# Order and company


async def test_a_fact_whose_transaction_ends_late_is_not_passed_over(
    store_dsn: str, postgres_store: PostgresEventStore
) -> None:
    early, late = sorted((table_id(7), table_id(7)))
    begun = """
        insert into engine.outbox (shard, table_id, position, version, previous_hash, subject, event_id, payload)
        values (7, %s, 1, 1, '', 'gouji.fact.early', 'early', '')
    """
    with psycopg.connect(store_dsn) as slow:
        slow.execute(begun, (early,))
        await postgres_store.append(append(late, 0, outbox=(fact(1),)))
        meanwhile = await postgres_store.pending_facts([7], 10)
        await postgres_store.mark_published(late, 1)

    assert [pending.table_id for pending in meanwhile] == [late]
    assert [pending.table_id for pending in await postgres_store.pending_facts([7], 10)] == [early]


async def test_appends_that_wait_at_the_same_moment_share_a_commit(store_dsn: str) -> None:
    store = await PostgresEventStore.open(store_dsn, Terms(lanes=1))
    tables = [table_id() for _ in range(60)]

    await asyncio.gather(*(store.append(append(table)) for table in tables))

    with psycopg.connect(store_dsn) as owner:
        found = owner.execute("select count(*), count(distinct xmin::text) from engine.event").fetchone()
    assert found is not None
    events, commits = found
    assert events == len(tables)
    assert commits <= 3
    await store.close()


async def test_an_append_with_its_facts_and_its_deadline_is_one_statement(
    postgres_store: PostgresEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, statements = table_id(), list[str]()
    await postgres_store.append(append(table))

    async def counted(connection: Connection, work: Awaitable[Any], seconds: float) -> Any:
        statements.append("one")
        return await bounded(connection, work, seconds)

    for module in (sessions, prepared):
        monkeypatch.setattr(module, "bounded", counted)
    await postgres_store.append(append(table, 1, event(), event(), outbox=(fact(1),), deadline=Deadline(1000, 3)))

    assert statements == ["one"]
    assert (await postgres_store.head(table)).deadline == Deadline(1000, 3)


# Bounds


async def test_a_full_queue_answers_that_it_is_full(store_dsn: str) -> None:
    store = await PostgresEventStore.open(store_dsn, Terms(lanes=1, batch=2, queue=5))
    waiting = [asyncio.create_task(store.append(append(table_id()))) for _ in range(20)]

    answers = await asyncio.gather(*waiting, return_exceptions=True)

    assert {type(answer) for answer in answers} == {Appended, StoreUnavailable}
    assert 5 <= sum(isinstance(answer, Appended) for answer in answers) < 20
    await store.append(append(table_id()))
    await store.close()


async def test_appends_of_one_table_are_stored_in_the_order_they_came(store_dsn: str) -> None:
    store = await PostgresEventStore.open(store_dsn, Terms(lanes=1))
    table = table_id()

    answers = await asyncio.gather(*(store.append(append(table, version)) for version in range(20)))

    assert [answer.version for answer in answers] == list(range(1, 21))
    await store.close()


async def test_two_processes_that_race_never_both_store_a_version(store_dsn: str) -> None:
    stores = [await PostgresEventStore.open(store_dsn) for _ in range(2)]
    tables = [table_id() for _ in range(40)]

    for version in range(5):
        answers = await asyncio.gather(
            *(store.append(append(table, version)) for table in tables for store in stores), return_exceptions=True
        )
        assert sum(isinstance(answer, Appended) for answer in answers) == len(tables)

    for store in stores:
        await store.close()


async def test_a_command_raced_by_two_processes_is_stored_once(store_dsn: str) -> None:
    stores = [await PostgresEventStore.open(store_dsn) for _ in range(2)]
    asked = [append(table_id()) for _ in range(40)]

    answers = await asyncio.gather(*(store.append(one) for one in asked for store in stores))

    assert answers[::2] == answers[1::2]
    for store in stores:
        await store.close()


async def test_a_command_decided_anew_elsewhere_still_gets_its_first_answer(store_dsn: str) -> None:
    """The second process expects the version after; its statement may not yet see the command that the first stores."""
    stores = [await PostgresEventStore.open(store_dsn) for _ in range(2)]
    asked = [append(table_id(3)) for _ in range(40)]
    for one in asked:
        await stores[0].append(one)

    for version in range(1, 4):
        asked = [replace(one, expected_version=version, command_id=UUID(int=version)) for one in asked]
        again = [replace(one, expected_version=version + 1, events=(event(b"again"),)) for one in asked]
        answers = await asyncio.gather(
            *map(stores[0].append, asked), *map(stores[1].append, again), return_exceptions=True
        )
        assert answers[: len(asked)] == [await stores[0].find_command(one.table_id, one.command_id) for one in asked]

    for store in stores:
        await store.close()


async def test_a_small_memory_of_heads_is_enough(store_dsn: str) -> None:
    store = await PostgresEventStore.open(store_dsn, Terms(heads=3))
    tables = [table_id() for _ in range(20)]

    for version in range(3):
        answers = await asyncio.gather(*(store.append(append(table, version)) for table in tables))
        assert {answer.version for answer in answers} == {version + 1}
    await store.close()
