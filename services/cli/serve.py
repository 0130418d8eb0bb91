"""`gouji serve`: one service in this process, set up by its environment.

Law: finds the service's own `main` and gets out of its way.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer


class Service(StrEnum):
    """What can be served."""

    ENGINE = "engine"
    TABLE = "table"
    MATCHMAKING = "matchmaking"
    RANKING = "ranking"
    TOGETHER = "together"
    """Table service and engine in one process."""


MODULES = {
    Service.ENGINE: "engine.service.main",
    Service.TABLE: "services.table.main",
    Service.MATCHMAKING: "services.matchmaking.main",
    Service.RANKING: "services.ranking.main",
    Service.TOGETHER: "deploy.together.main",
}


def serve(
    service: Annotated[Service, typer.Argument(help="Which service to run.")],
    with_parent: Annotated[
        bool, typer.Option("--with-parent", help="Stop when standard input ends, as it does when a supervisor dies.")
    ] = False,
) -> None:
    """Run one service until it is told to stop. Settings come from the environment, see docs/operations.md."""
    if with_parent:
        threading.Thread(target=_stop_at_end_of_input, name="parent", daemon=True).start()
    import_module(MODULES[service]).main()


def _stop_at_end_of_input() -> None:
    # Not through `sys.stdin`, whose lock this thread would hold while the interpreter ends.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
