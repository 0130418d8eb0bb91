"""Database roles that a service's migration grants its schema to.

Law: makes a role without a login when it is not there; logins and passwords are the deployment's.
"""

from __future__ import annotations

from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError, ProgrammingError


def ensure_role(connection: Connection, role: str) -> None:
    """Make the role unless the server has it: roles belong to all databases of a server."""
    known = connection.execute(text("select 1 from pg_roles where rolname = :role"), {"role": role}).first()
    if known:
        return
    try:
        with connection.begin_nested():
            connection.execute(text(f'create role "{role}" nologin'))
    except (IntegrityError, ProgrammingError):
        # Made by another migrator in this very moment; a missing right to make it shows at the grants.
        return
