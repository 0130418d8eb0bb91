"""`gouji bus`: the facts on the bus held against the log, and told again when the bus has lost them.

Law: composes the log, the bus and `engine.service.reconciliation`, and tells what was found.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Protocol
from uuid import UUID

import typer

from services.cli.operator_bus import operator_bus
from services.cli.output import ERR, OUT, fail, print_json

if TYPE_CHECKING:
    from engine.service.reconciliation import Finding, Reconciliation
    from engine.store.port import StreamHead

KEPT_DAYS = 29
"""A day less than facts stay on the bus, so that none of a table's is gone by its age."""

app = typer.Typer(help="The facts on the bus, which the log can always tell again.", no_args_is_help=True)

Dsn = Annotated[str, typer.Option(envvar="GOUJI_POSTGRES_DSN", help="The database, as the engine or the owner.")]
Since = Annotated[
    datetime | None,
    typer.Option(
        help=f"Tables made on this day (UTC) or later; {KEPT_DAYS} days ago if left out.", formats=["%Y-%m-%d"]
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for each table that needs a look.")]


class Work(Protocol):
    """What is done with the tables from one id on."""

    def __call__(
        self, work: Reconciliation, first: UUID, heads: Sequence[StreamHead], report: Callable[[Finding], None]
    ) -> Awaitable[None]:
        """Report each table."""
        ...


@app.command("check")
def check(dsn: Dsn, since: Since = None, as_json: AsJson = False) -> None:
    """Compare every table's facts on the bus with its log, changing nothing. Exit 1 when one differs."""
    _tell(_found(dsn, since, _check, anew=False), as_json=as_json)


@app.command("rebuild")
def rebuild(
    dsn: Dsn,
    since: Since = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Delete all facts on the bus first: after a fork, or a hole in the middle.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell the facts again that the bus has lost; harmless when repeated. Exit 1 when a table still differs."""
    _tell(_found(dsn, since, _rebuild, anew=anew), as_json=as_json)


async def _check(
    work: Reconciliation, first: UUID, heads: Sequence[StreamHead], report: Callable[[Finding], None]
) -> None:
    await work.check(first, heads, report)


async def _rebuild(
    work: Reconciliation, first: UUID, heads: Sequence[StreamHead], report: Callable[[Finding], None]
) -> None:
    del first
    await work.rebuild(heads, report)


def _found(dsn: str, since: datetime | None, work: Work, *, anew: bool) -> list[Finding]:
    from engine.runtime.bus import BusUnavailable
    from engine.store.port import StoreUnavailable

    try:
        return asyncio.run(_run(dsn, since, work, anew=anew))
    except BusUnavailable as failure:
        fail(f"the bus cannot be reached, or refuses: {failure.__cause__ or failure}")
    except StoreUnavailable:
        fail("the database cannot be reached")


async def _run(dsn: str, since: datetime | None, work: Work, *, anew: bool) -> list[Finding]:
    from rich.progress import Progress

    from engine.runtime import subjects
    from engine.service.envelopes import wire as envelopes
    from engine.service.reconciliation import Reconciliation
    from engine.store.partitions import first_id
    from engine.store.postgres import PostgresEventStore

    first = first_id((since or datetime.now(UTC) - timedelta(days=KEPT_DAYS)).date())
    found: list[Finding] = []
    store = await PostgresEventStore.open(dsn)
    try:
        async with operator_bus() as bus:
            if anew:
                await bus.forget_facts(subjects.FACTS)
            reconciliation = Reconciliation(store, bus, envelopes.facts)
            heads = await reconciliation.tables(first)
            with Progress(console=ERR, transient=True) as progress:
                bar = progress.add_task("tables", total=len(heads))

                def report(finding: Finding) -> None:
                    found.append(finding)
                    progress.advance(bar)

                await work(reconciliation, first, heads, report)
    finally:
        await store.close()
    return found


def _tell(found: list[Finding], *, as_json: bool) -> None:
    from engine.service.reconciliation import SOUND

    wrong = sorted(finding for finding in found if finding.verdict not in SOUND)
    for finding in wrong:
        if as_json:
            print_json(finding._asdict() | {"table_id": str(finding.table_id)})
        else:
            OUT.print(f"{finding.table_id}  {finding.verdict}  log {finding.in_log}  bus {finding.on_bus}")
    verdicts = Counter(str(finding.verdict) for finding in found)
    counted = {"tables": len(found), "told": sum(finding.told for finding in found), **verdicts}
    if as_json:
        print_json(counted)
    else:
        OUT.print(", ".join(f"{name} {number}" for name, number in counted.items()))
    raise typer.Exit(int(bool(wrong)))
