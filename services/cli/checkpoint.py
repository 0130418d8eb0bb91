"""`gouji checkpoint`: where the whole log stands, signed; and the log held against what was signed once.

Law: runs `engine.store.checkpoint` and tells what it found.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.output import OUT, fail, print_json

if TYPE_CHECKING:
    from engine.store.checkpoint import Finding, Mark
    from engine.store.postgres import PostgresEventStore

app = typer.Typer(help="Signed checkpoints of the log, by which tampering is found.", no_args_is_help=True)

Dsn = Annotated[str, typer.Option(envvar="GOUJI_POSTGRES_DSN", help="The database, as the engine or the owner.")]


@app.command("write")
def write(
    dsn: Dsn,
    key: Annotated[Path, typer.Option(help="The private key, Ed25519, PEM.", exists=True, dir_okay=False)],
    to: Annotated[Path, typer.Option(help="The file to write, which must not exist.")],
) -> None:
    """Write where every table's log stands now, and sign it. Keep the file where nobody of the database can change it."""
    from engine.store import checkpoint

    found = asyncio.run(_marks(dsn))
    try:
        text = checkpoint.signed(found, time.time_ns() // 1_000_000, key.read_bytes())
        with to.open("x") as file:
            file.write(text)
    except (ValueError, OSError) as failure:
        fail(str(failure))
    OUT.print(f"{len(found)} tables")


@app.command("verify")
def verify(
    file: Annotated[Path, typer.Argument(help="A checkpoint.", exists=True, dir_okay=False)],
    dsn: Dsn,
    key: Annotated[Path, typer.Option(help="The public key, PEM.", exists=True, dir_okay=False)],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: a line for each table that differs, then the counts.")
    ] = False,
) -> None:
    """Hold the log against a checkpoint. Exit 1 when a table is missing, shorter or changed, or the file is not signed."""
    from engine.store import checkpoint
    from engine.store.checkpoint import Verdict

    try:
        found = checkpoint.read(file.read_text(), key.read_bytes())
    except (checkpoint.NotSigned, UnicodeDecodeError) as failure:
        fail(str(failure))
    findings = asyncio.run(_compared(dsn, found))
    wrong = [one for one in findings if one.verdict not in {Verdict.SAME, Verdict.ARCHIVED}]
    for mark, verdict in wrong:
        if as_json:
            print_json({"table_id": str(mark.table_id), "version": mark.version, "verdict": verdict})
        else:
            OUT.print(f"{mark.table_id}  {verdict}  at version {mark.version}")
    counted = {"tables": len(findings)} | Counter(str(finding.verdict) for finding in findings)
    if as_json:
        print_json(counted)
    else:
        OUT.print(", ".join(f"{name} {number}" for name, number in counted.items()))
    raise typer.Exit(int(bool(wrong)))


async def _marks(dsn: str) -> list[Mark]:
    from engine.store import checkpoint

    async with _opened(dsn) as store:
        return await checkpoint.marks(store)


async def _compared(dsn: str, found: Sequence[Mark]) -> list[Finding]:
    from engine.store import checkpoint

    async with _opened(dsn) as store:
        return await checkpoint.compare(store, found)


@asynccontextmanager
async def _opened(dsn: str) -> AsyncIterator[PostgresEventStore]:
    """The store, for the block; a database out of reach ends the command."""
    from engine.store.port import StoreUnavailable
    from engine.store.postgres import PostgresEventStore

    try:
        store = await PostgresEventStore.open(dsn)
        try:
            yield store
        finally:
            await store.close()
    except StoreUnavailable:
        fail("the database cannot be reached")
