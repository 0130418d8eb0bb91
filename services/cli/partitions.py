"""`gouji partitions`: room in the log for the coming days, made before it is needed.

Law: runs `deploy.schemas` as the owner, once or for ever.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from services.cli.output import ERR, OUT, fail

AGAIN_S = 60.0
"""Seconds until the next try when the database could not be reached."""


def partitions(
    dsn: Annotated[str, typer.Option(envvar="GOUJI_OWNER_DSN", help="The database, as the owner of its schemas.")],
    every: Annotated[float | None, typer.Option(help="Repeat after so many hours, for ever.", min=0.1, max=24)] = None,
) -> None:
    """Make the log's partitions for two weeks ahead. Run it daily: without room for a day its tables cannot be opened."""
    while True:
        is_done = _made(dsn)
        if every is None:
            break
        time.sleep(every * 3600 if is_done else AGAIN_S)
    if not is_done:
        fail("no partitions were made")


def _made(dsn: str) -> bool:
    """Whether there is room now; what stood in the way is told."""
    import psycopg

    from deploy import schemas

    try:
        days = schemas.add_partitions(dsn)
    except psycopg.OperationalError as failure:
        ERR.print(f"the database cannot be reached: {failure}", markup=False)
        return False
    for day in days:
        OUT.print(f"made {day.isoformat()}")
    return True
