"""`gouji tables quarantine`: tables that faults have set aside, seen and released by an operator.

Law: asks the engine over the bus and looks at the log; decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeVar
from uuid import UUID

import typer

from services.cli.operator_bus import operator_bus
from services.cli.output import ERR, OUT, fail, print_json

if TYPE_CHECKING:
    from engine.runtime.bus import Bus
    from engine.service.inspection import Inspection
    from services.cli.quarantine_client import Quarantine, SetAside

Answer = TypeVar("Answer")

OPERATOR = "operator"

app = typer.Typer(help="Tables, for operators.", no_args_is_help=True)
quarantine = typer.Typer(help="Tables that a fault of the rules has set aside.", no_args_is_help=True)
app.add_typer(quarantine, name="quarantine")

Table = Annotated[UUID, typer.Argument(help="The table's id.")]
By = Annotated[str, typer.Option(help="Who asks; the engine logs it.", envvar=["GOUJI_OPERATOR", "USER"])]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@quarantine.command("list")
def list_(by: By = OPERATOR, as_json: AsJson = False) -> None:
    """List what all engines have set aside; exit 1 when there is anything, or a shard that nobody answers for."""
    tables, silent = _asked(_everywhere(by))
    for table in tables:
        if as_json:
            print_json(table._asdict())
        else:
            OUT.print(f"{table.table_id}  {table.fault}", markup=False)
    if silent:
        ERR.print(f"nobody answers for {len(silent)} of 256 shards")
    raise typer.Exit(int(bool(tables or silent)))


@quarantine.command("inspect")
def inspect(
    table: Table,
    dsn: Annotated[str, typer.Option(envvar="GOUJI_POSTGRES_DSN", help="The database, as the engine or the owner.")],
    by: By = OPERATOR,
    events: Annotated[int, typer.Option(help="How many of the last events to show.", min=0, max=1000)] = 10,
    as_json: AsJson = False,
) -> None:
    """Show where a table stands in its log, how far this release can fold it, and why an engine set it aside."""
    looked = _looked(dsn, table, events)
    fault = asyncio.run(_fault(table, by))
    if as_json:
        print_json(looked._asdict() | {"set_aside": fault, "last": [line._asdict() for line in looked.last]})
    else:
        _tell(looked, fault)


@quarantine.command("release")
def release(table: Table, by: By = OPERATOR) -> None:
    """Have the engine take a table up again from its log; exit 1 when it breaks again."""
    _asked(_release(table, by))
    OUT.print("released")


def _tell(looked: Inspection, fault: str) -> None:
    OUT.print(f"table      {looked.table_id}  {looked.phase}{', closed' * looked.closed}")
    OUT.print(f"set aside  {fault or 'no'}", markup=False)
    OUT.print(f"version    {looked.version}, folded to {looked.folded}  {looked.fault}".rstrip(), markup=False)
    OUT.print(f"chain      {f'breaks at version {looked.broken_at}' if looked.broken_at else 'whole'}")
    OUT.print(f"deadline   {_time(looked.deadline_at_ms) if looked.deadline_at_ms else 'none'}")
    for line in looked.last:
        OUT.print(f"{line.version:>7}  {_time(line.at_ms)}  {line.type:<20} {line.actor}", markup=False)


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(" ", "milliseconds")


def _asked(asking: Coroutine[None, None, Answer]) -> Answer:
    from engine.runtime.bus import BusUnavailable
    from services.cli.quarantine_client import NotReleased

    try:
        return asyncio.run(asking)
    except BusUnavailable:
        fail("the bus cannot be reached")
    except NotReleased as reason:
        fail(f"not released: {reason}")


def _looked(dsn: str, table: UUID, events: int) -> Inspection:
    from engine.store.port import StoreUnavailable, StreamNotFound

    try:
        return asyncio.run(_inspect(dsn, table, events))
    except StreamNotFound:
        fail(f"there is no table {table}")
    except StoreUnavailable:
        fail("the database cannot be reached")


async def _inspect(dsn: str, table: UUID, events: int) -> Inspection:
    from engine.service.inspection import inspect
    from engine.store.postgres import PostgresEventStore

    store = await PostgresEventStore.open(dsn)
    try:
        return await inspect(store, table, events)
    finally:
        await store.close()


async def _everywhere(by: str) -> tuple[list[SetAside], list[int]]:
    async with operator_bus() as bus:
        return await _quarantine(bus, by).everywhere()


async def _fault(table: UUID, by: str) -> str:
    """Why the table is set aside; that it cannot be told hides nothing of what the log says."""
    from engine.runtime.bus import BusUnavailable

    try:
        async with operator_bus() as bus:
            set_aside = await _quarantine(bus, by).of(table)
    except BusUnavailable:
        return "unknown, the bus cannot be reached"
    return set_aside.fault if set_aside else ""


async def _release(table: UUID, by: str) -> None:
    async with operator_bus() as bus:
        await _quarantine(bus, by).release(table)


def _quarantine(bus: Bus, by: str) -> Quarantine:
    from services.cli.quarantine_client import Quarantine

    return Quarantine(bus, by)
