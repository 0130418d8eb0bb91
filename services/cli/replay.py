"""`gouji replay`: a table built again from its log alone, in this process.

Law: composes a store or the archives, and `engine.service.replay`; starts no engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from services.cli.output import fail, print_json

if TYPE_CHECKING:
    from engine.service.replay import Fingerprint


def replay(
    table: Annotated[UUID, typer.Argument(help="The table's id.")],
    dsn: Annotated[
        str | None, typer.Option(envvar="GOUJI_POSTGRES_DSN", help="The database, as the engine or the owner.")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option(help="Read the archives of this folder instead.", exists=True, file_okay=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each version.")] = False,
) -> None:
    """Print each version of a table with its event and the fingerprint of its state."""
    if archive is None and dsn is None:
        fail("say which database or which archive", code=2)
    for fingerprint in _read(_from_archive(archive, table) if archive else _from_database(dsn or "", table), table):
        if as_json:
            print_json(fingerprint._asdict())
        else:
            typer.echo(f"{fingerprint.version:>6} {fingerprint.state_hash[:16]} {fingerprint.event}")


def _read(reading: Coroutine[None, None, list[Fingerprint]], table: UUID) -> list[Fingerprint]:
    from engine.store.archive import DamagedArchive
    from engine.store.port import StoreUnavailable, StreamNotFound

    try:
        return asyncio.run(reading)
    except StreamNotFound:
        fail(f"there is no table {table}")
    except StoreUnavailable:
        fail("the database cannot be reached")
    except DamagedArchive as damage:
        fail(f"the archive is damaged: {damage}")


async def _from_archive(folder: Path, table: UUID) -> list[Fingerprint]:
    from engine.service.replay import fingerprints
    from engine.store.archive import ArchivedLog

    return await fingerprints(ArchivedLog(folder), table)


async def _from_database(dsn: str, table: UUID) -> list[Fingerprint]:
    from engine.service.replay import fingerprints
    from engine.store.postgres import PostgresEventStore

    store = await PostgresEventStore.open(dsn)
    try:
        return await fingerprints(store, table)
    finally:
        await store.close()
