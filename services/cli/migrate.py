"""`gouji migrate`: bring the database up to date before services start.

Law: runs `deploy.schemas` as the owner and tells what it did.
"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from services.cli.output import OUT, fail, print_json

ENV_PASSWORD = "GOUJI_{}_DATABASE_PASSWORD"  # noqa: S105 -- the name of a variable


def migrate(
    dsn: Annotated[str, typer.Option(envvar="GOUJI_OWNER_DSN", help="The database, as the owner of its schemas.")],
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 when something is missing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print schemas and versions as JSON.")] = False,
) -> None:
    """Apply what the database lacks.

    Passwords of services in GOUJI_ENGINE_DATABASE_PASSWORD, GOUJI_MATCHMAKING_DATABASE_PASSWORD and
    GOUJI_RANKING_DATABASE_PASSWORD let their roles sign in.
    """
    from deploy import schemas
    from engine.runtime.faults import Unavailable
    from engine.runtime.migrations import SchemaAhead

    try:
        changed = schemas.pending(dsn) if check else schemas.migrate(dsn)
        if not check:
            schemas.let_in(dsn, _passwords(list(schemas.SCHEMAS)))
    except Unavailable as failure:
        fail(failure.detail)
    except SchemaAhead:
        fail("the database was migrated by a newer release; run that one")
    _show(changed, as_json=as_json)
    raise typer.Exit(int(check and bool(changed)))


def _passwords(names: list[str]) -> dict[str, str]:
    given = {name: os.environ.get(ENV_PASSWORD.format(name.upper())) for name in names}
    return {name: password for name, password in given.items() if password}


def _show(changed: dict[str, list[str]], *, as_json: bool) -> None:
    if as_json:
        print_json(changed)
    elif not changed:
        OUT.print("up to date")
    for schema, versions in {} if as_json else changed.items():
        OUT.print(f"{schema}: {' '.join(versions)}")
