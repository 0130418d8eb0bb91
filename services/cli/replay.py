"""`gouji replay`: a table built again from its log alone, in this process.

Law: composes a store and `engine.service.replay`; starts no engine.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from services.cli.output import fail, print_json

if TYPE_CHECKING:
    from engine.service.replay import Fingerprint


def replay(
    table: Annotated[UUID, typer.Argument(help="The table's id.")],
    dsn: Annotated[str, typer.Option(envvar="GOUJI_POSTGRES_DSN", help="The database, as the engine or the owner.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each version.")] = False,
) -> None:
    """Print each version of a table with its event and the fingerprint of its state."""
    for fingerprint in _read(dsn, table):
        if as_json:
            print_json(fingerprint._asdict())
        else:
            typer.echo(f"{fingerprint.version:>6} {fingerprint.state_hash[:16]} {fingerprint.event}")


def _read(dsn: str, table: UUID) -> list[Fingerprint]:
    from engine.store.port import StoreUnavailable, StreamNotFound

    try:
        return asyncio.run(_fingerprints(dsn, table))
    except StreamNotFound:
        fail(f"there is no table {table}")
    except StoreUnavailable:
        fail("the database cannot be reached")


async def _fingerprints(dsn: str, table: UUID) -> list[Fingerprint]:
    from engine.service.replay import fingerprints
    from engine.store.postgres import PostgresEventStore

    store = await PostgresEventStore.open(dsn)
    try:
        return await fingerprints(store, table)
    finally:
        await store.close()
