"""Schema migrations: one folder of numbered scripts for each schema, applied forwards only.

Law: runs Alembic and knows no table. A folder holds `versions/*.py`; it owns one Postgres schema, which also holds its
version table, and it never touches another's. All pending scripts run in one transaction under a lock on the version
table, so that of two migrators the second waits and then finds nothing to do. Scripts see their schema as the whole
search path, so they may leave it unsaid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

import psycopg
import sqlalchemy
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, MigrationStep
from alembic.script import Script, ScriptDirectory
from alembic.util import CommandError
from psycopg import errors, sql
from sqlalchemy import Connection
from sqlalchemy.pool import NullPool

from engine.runtime.faults import Unavailable

_PREPARE = """
create schema if not exists {schema};
create table if not exists {table} (version_num varchar(32) constraint alembic_version_pkc primary key);
"""

_LOCK = """
set local search_path to {schema};
set local lock_timeout to '60s';
lock table {table} in share row exclusive mode;
grant select on {table} to public;
"""

_ONE_AT_A_TIME = Lock()
"""Alembic's `op`, which scripts import, is one object for the whole process."""


class SchemaAhead(Exception):
    """The database was migrated by a newer release: run that release."""


def upgrade(dsn: str, folder: Path, schema: str) -> None:
    """Bring the schema to the folder's newest version; all of it or nothing.

    Raises `Unavailable` when the database cannot be reached, `SchemaAhead` when its version is not in the folder. What
    a script does wrong comes through as SQLAlchemy's error.
    """
    scripts = ScriptDirectory(folder)
    _prepare(dsn, schema)
    with _ONE_AT_A_TIME, _connected(dsn) as connection, connection.begin():
        connection.exec_driver_sql(_named(_LOCK, schema))
        context = _context(connection, schema, scripts)
        with Operations.context(context):
            context.run_migrations()


def pending(dsn: str, folder: Path, schema: str) -> list[str]:
    """Name the versions that `upgrade` would apply, oldest first; changes nothing.

    A schema that a newer release has migrated has nothing pending. Raises `Unavailable`.
    """
    scripts = ScriptDirectory(folder)
    with _connected(dsn) as connection:
        heads = _context(connection, schema, scripts).get_current_heads()
    with suppress(SchemaAhead):
        return [script.revision for script in _missing(scripts, heads)]
    return []


def _prepare(dsn: str, schema: str) -> None:
    """Make the schema and its version table. Who loses a race to make them finds them made."""
    with (
        _reachable(),
        suppress(errors.UniqueViolation, errors.DuplicateSchema, errors.DuplicateTable),
        psycopg.connect(dsn) as connection,
    ):
        connection.execute(_named(_PREPARE, schema).encode())


def _context(connection: Connection, schema: str, scripts: ScriptDirectory) -> MigrationContext:
    def steps(heads: Sequence[str], _: MigrationContext) -> Iterable[MigrationStep]:
        missing = _missing(scripts, heads)
        return [MigrationStep.upgrade_from_script(scripts.revision_map, script) for script in missing]

    return MigrationContext.configure(connection, opts={"fn": steps, "script": scripts, "version_table_schema": schema})


def _missing(scripts: ScriptDirectory, heads: Sequence[str]) -> list[Script]:
    """List the scripts that come after these versions, oldest first. Raises `SchemaAhead`."""
    try:
        for head in heads:
            scripts.get_revision(head)
    except CommandError as unknown:
        raise SchemaAhead from unknown
    return [*scripts.iterate_revisions("heads", tuple(heads), implicit_base=True)][::-1]


@contextmanager
def _connected(dsn: str) -> Iterator[Connection]:
    """Lend a connection of this DSN, in libpq's own reading of it, to Alembic."""
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), poolclass=NullPool)
    with _reachable(), engine.connect() as connection:
        yield connection


@contextmanager
def _reachable() -> Iterator[None]:
    try:
        yield
    except (psycopg.OperationalError, sqlalchemy.exc.OperationalError) as failure:
        raise Unavailable("The database cannot be reached.") from failure


def _named(template: str, schema: str) -> str:
    """Fill in the schema and its version table, quoted."""
    table = sql.Identifier(schema, "alembic_version")
    return sql.SQL(template).format(schema=sql.Identifier(schema), table=table).as_string()
