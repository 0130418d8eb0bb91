"""The command line `gouji`: every command by its name, each in a module of its own.

Law: names only. Modules of commands are thin: they read arguments, call what does the work, print, and exit with 0 when all
is well, 1 when what was asked does not hold, 2 when it was asked wrongly. They load what they need when they run.
"""

from __future__ import annotations

import os

import typer

from services.cli import (
    archive,
    bus,
    cases,
    chaos,
    checkpoint,
    facts,
    health,
    migrate,
    partitions,
    ratings,
    replay,
    serve,
    simulate,
    tables,
    token,
    up,
    variants,
    verify,
)
from services.cli.demo.command import demo

app = typer.Typer(
    name="gouji",
    help="Gouji: the six-player, four-pack card game of Shandong.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(up.up)
app.command()(demo)
app.command()(serve.serve)
app.command()(migrate.migrate)
app.command()(partitions.partitions)
app.add_typer(archive.app, name="archive")
app.add_typer(checkpoint.app, name="checkpoint")
app.add_typer(tables.app, name="tables")
app.add_typer(bus.app, name="bus")
app.command()(facts.facts)
app.command()(ratings.ratings)
app.command()(health.health)
app.command()(token.token)
app.command()(cases.cases)
app.command()(verify.verify)
app.command()(replay.replay)
app.command()(variants.variants)
app.command()(simulate.simulate)
app.command()(chaos.chaos)


def main() -> None:
    """Run the command line."""
    # Supervisors start children by fork while gRPC runs; its own fork handlers would crash such a child now and then.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    app()
