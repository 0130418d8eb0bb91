import psycopg
import pytest

from deploy import schemas


def test_every_service_finds_its_schema_after_a_migration(empty_database: str) -> None:
    applied = schemas.migrate(empty_database)

    assert list(applied) == list(schemas.SCHEMAS)
    assert schemas.pending(empty_database) == {}


def test_a_second_migration_finds_nothing_to_do(database: str) -> None:
    assert schemas.migrate(database) == {}


def test_nothing_is_numbered_over_all_tables_but_the_journal_of_results(database: str) -> None:
    numbered = """
        select table_schema, table_name, column_name from information_schema.columns
        where (is_identity = 'YES' or column_default like 'nextval%%') and table_schema = any(%s)
    """
    with psycopg.connect(database) as connection:
        found = connection.execute(numbered, [list(schemas.SCHEMAS)]).fetchall()

    assert found == [("ranking", "result", "ordinal")]


@pytest.mark.parametrize("schema", schemas.SCHEMAS)
def test_a_service_signs_in_and_sees_no_schema_but_its_own(database: str, schema: str) -> None:
    schemas.let_in(database, {schema: "password"})
    mine = psycopg.conninfo.make_conninfo(database, user=schemas.role(schema), password="password")

    with psycopg.connect(mine) as connection:
        visible = connection.execute(
            "select nspname from pg_namespace where nspname = any(%s) and has_schema_privilege(oid, 'usage')",
            [list(schemas.SCHEMAS)],
        ).fetchall()

    assert visible == [(schema,)]


def test_the_engine_may_neither_change_nor_remove_what_is_in_the_log(database: str) -> None:
    schemas.let_in(database, {"engine": "password"})
    mine = psycopg.conninfo.make_conninfo(database, user=schemas.role("engine"), password="password")

    for statement in ("delete from engine.event", "update engine.event set actor = ''", "truncate engine.event"):
        with psycopg.connect(mine) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())
