"""`gouji partitions`: room in the log for the coming days, made before it is needed.

Law: runs `deploy.schemas` as the owner, once or for ever.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from services.cli.output import OUT


def partitions(
    dsn: Annotated[str, typer.Option(envvar="GOUJI_OWNER_DSN", help="The database, as the owner of its schemas.")],
    every: Annotated[float | None, typer.Option(help="Repeat after so many hours, for ever.", min=0.1, max=24)] = None,
) -> None:
    """Make the log's partitions for two weeks ahead. Run it daily: without room for a day its tables cannot be opened."""
    from deploy import schemas

    while True:
        for day in schemas.add_partitions(dsn):
            OUT.print(f"made {day.isoformat()}")
        if every is None:
            return
        time.sleep(every * 3600)
