"""`gouji facts`: the facts that a service has set aside, and another try for them.

Law: opens the service's own intake on its schema, as the owner; decides nothing.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli.output import OUT, fail

if TYPE_CHECKING:
    from engine.runtime.intake import Intake


class Consumer(StrEnum):
    """Who consumes facts of tables."""

    MATCHMAKING = "matchmaking"
    RANKING = "ranking"


def facts(
    consumer: Annotated[Consumer, typer.Argument(help="Whose parked facts.")],
    dsn: Annotated[str, typer.Option(envvar="GOUJI_OWNER_DSN", help="The database, as the owner of its schemas.")],
    release: Annotated[str, typer.Option(help="Give this source's facts another try, once the fault is mended.")] = "",
) -> None:
    """List the facts that a service could not take, by source; exit 1 when there are any."""
    from engine.runtime.faults import Unavailable

    try:
        left = asyncio.run(_look(consumer, dsn, release))
    except Unavailable as failure:
        fail(failure.detail)
    raise typer.Exit(int(left > 0))


async def _look(consumer: Consumer, dsn: str, release: str) -> int:
    from prometheus_client import CollectorRegistry

    from engine.runtime import postgres

    with postgres.reaching():
        async with postgres.pool(dsn, consumer, size=2) as pool:
            await pool.wait()
            new_intake = import_module(f"services.{consumer}.main").new_intake
            intake: Intake[Any] = new_intake(pool, CollectorRegistry())
            if release:
                OUT.print(f"{await intake.release(release)} released")
            parked = await intake.parked()
    for fact in parked:
        OUT.print(f"{fact.source} {fact.position}: {fact.complaint} ({fact.parked_at:%Y-%m-%d %H:%M} UTC)")
    return len(parked)
