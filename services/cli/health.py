"""`gouji health`: ask a service whether it can serve, for probes and people.

Law: the standard gRPC health protocol, nothing else.
"""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli.output import OUT


def health(
    address: Annotated[str, typer.Argument(help="Where the service listens, host:port.")],
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.", min=0.1, max=60)] = 3.0,
) -> None:
    """Print the service's health; exit 0 only when it is SERVING."""
    from deploy.local.health import state_of

    state = state_of(address, timeout_s=timeout)
    OUT.print(state)
    raise typer.Exit(int(state != "SERVING"))
