"""`gouji health`: ask a service whether it can serve, for probes and people.

Law: the standard gRPC health protocol, nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli.output import OUT, fail


def health(
    address: Annotated[str, typer.Argument(help="Where the service listens, host:port.")],
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.", min=0.1, max=60)] = 3.0,
    ca: Annotated[
        Path | None, typer.Option(help="The authority of the service's certificate (PEM).", envvar="GOUJI_HEALTH_CA")
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Our own certificate, where clients must show one.", envvar="GOUJI_HEALTH_CERTIFICATE"),
    ] = None,
    key: Annotated[Path | None, typer.Option(help="The key of our own certificate.", envvar="GOUJI_HEALTH_KEY")] = None,
) -> None:
    """Print the service's health; exit 0 only when it is SERVING."""
    from deploy.local.health import state_behind
    from engine.runtime.grpc_client import DialOptions

    options = DialOptions(address, tls=ca is not None, ca=ca, certificate=certificate, key=key)
    try:
        state = state_behind(options, timeout_s=timeout)
    except OSError as failure:
        fail(str(failure))
    OUT.print(state)
    raise typer.Exit(int(state != "SERVING"))
