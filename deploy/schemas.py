"""Which PostgreSQL schemas an installation has, how they are brought up to date and who may sign in to them.

Law: knows folders of migration scripts and roles, no table. Scripts run as the owner; each makes its service's role
`gouji_<schema>`, without a password, and grants it what the service needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import psycopg
from psycopg import sql

from engine.runtime import migrations
from engine.store.partitions import make_partitions

_ROOT = Path(__file__).parent.parent

SCHEMAS = {
    "engine": _ROOT / "engine" / "store" / "migrations",
    "matchmaking": _ROOT / "services" / "matchmaking" / "migrations",
    "ranking": _ROOT / "services" / "ranking" / "migrations",
}


def role(schema: str) -> str:
    """The role that this schema's service signs in as."""
    return f"gouji_{schema}"


def pending(dsn: str) -> dict[str, list[str]]:
    """The versions that each schema lacks; schemas that lack none are left out. Raises `Unavailable`."""
    missing = {schema: migrations.pending(dsn, folder, schema) for schema, folder in SCHEMAS.items()}
    return {schema: versions for schema, versions in missing.items() if versions}


def migrate(dsn: str) -> dict[str, list[str]]:
    """Bring every schema up to date and tell what was applied. Raises `Unavailable`, `SchemaAhead`."""
    missing = pending(dsn)
    for schema, folder in SCHEMAS.items():
        migrations.upgrade(dsn, folder, schema)
    add_partitions(dsn)
    return missing


def add_partitions(dsn: str) -> tuple[date, ...]:
    """Make the log's partitions of the coming days; to be repeated daily. Harmless when repeated."""
    return make_partitions(dsn, datetime.now(UTC).date())


def let_in(dsn: str, passwords: Mapping[str, str]) -> None:
    """Let the roles of these schemas sign in, each with its password; harmless when repeated."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for schema, password in passwords.items():
            statement = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}")
            connection.execute(statement.format(sql.Identifier(role(schema)), sql.Literal(password)))
