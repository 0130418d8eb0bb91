"""`gouji ratings`: make the ratings anew from what they are a fold of.

Law: calls the ranking service's own rebuild, as the owner of its schema, and tells what it did. What is forgotten to be
counted anew is forgotten on the bus as well, where it is told anew.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from services.cli.operator_bus import operator_bus
from services.cli.output import OUT, fail


def ratings(
    dsn: Annotated[str, typer.Option(envvar="GOUJI_OWNER_DSN", help="The database, as the owner of its schemas.")],
    from_stream: Annotated[
        bool, typer.Option("--from-stream", help="Forget them; ranking, stopped now, counts all facts when it starts.")
    ] = False,
) -> None:
    """Fold the journal of counted results again and mend the ratings that differ, also while ranking runs."""
    from engine.runtime.bus import BusUnavailable
    from engine.runtime.faults import Unavailable
    from services.ranking import main as ranking

    try:
        if from_stream:
            asyncio.run(_forget(dsn))
            OUT.print("forgotten; start ranking to count again")
            return
        rebuilt = asyncio.run(ranking.rebuild_ratings(dsn))
    except Unavailable as failure:
        fail(failure.detail)
    except BusUnavailable:
        fail("the bus cannot be reached, or refuses")
    OUT.print(f"{rebuilt.results} results, {rebuilt.players} players, {rebuilt.mended} mended")


async def _forget(dsn: str) -> None:
    """Forget the ratings and what the bus was told of them."""
    from engine.runtime import subjects
    from services.ranking import main as ranking

    async with operator_bus() as bus:
        await ranking.start_over(dsn)
        await bus.forget_facts(subjects.RATINGS)
