"""`gouji token`: a token for a player of a local installation, as an identity provider would sign one.

Law: signs with the key that the installation's folder keeps; a house signs with a key of its own elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli.output import fail
from services.cli.up import DATA_OPTION

HOUR_MS = 3_600_000


def token(
    player: Annotated[str, typer.Argument(help="The player's id: opaque, 1 to 128 characters.")],
    folder: Annotated[Path | None, DATA_OPTION] = None,
    role: Annotated[str, typer.Option(help="player, service or admin.")] = "player",
    hours: Annotated[float, typer.Option(help="How long it is valid.", min=0.01, max=720)] = 12,
) -> None:
    """Print a signed token for a player."""
    from deploy.local.environment import TOKEN_KEY
    from engine.runtime.clock import SystemClock
    from engine.runtime.identity import Minter, Role
    from engine.runtime.settings import GrpcSettings
    from services.cli.up import data_folder

    key = data_folder(folder) / TOKEN_KEY
    if role not in list(Role):
        fail(f"no role is called {role}", code=2)
    if not key.exists():
        fail(f"no installation in {key.parent}: start one with `gouji up`")
    audience = str(GrpcSettings.model_fields["token_audience"].default)
    minter = Minter(key.read_bytes(), audience, SystemClock())
    typer.echo(minter.mint(player, Role(role), int(hours * HOUR_MS)))
