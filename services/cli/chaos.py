"""`gouji chaos`: a whole installation on this machine, players, and everything that can go wrong; then the proof.

Law: reads arguments and prints. What hurts and judges is the harness of the tests, which is loaded from a source checkout
and is not part of an installed package.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from services.cli.output import ERR, OUT, fail, print_json

ALL = "kill,restart,stop,reset,lose,blackhole,latency,slowdb,clock,fulldisk"


def chaos(  # noqa: PLR0917 - the options of one command
    minutes: Annotated[float, typer.Option(help="How long blows fall.", min=0.05, max=1440)] = 3.0,
    tables: Annotated[int, typer.Option(help="Tables that are played at at once.", min=1, max=200)] = 8,
    seed: Annotated[int, typer.Option(help="The same seed gives the same blows.")] = 1,
    faults: Annotated[str, typer.Option(help="Which kinds of trouble, comma-separated.")] = ALL,
    nodes: Annotated[int, typer.Option(help="Servers of NATS: 1, or 3 as a cluster.")] = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the folder with logs and data behind.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Play through kills, pauses, dead links and slow databases on a throw-away installation of its own.

    Clients keep their own records; when all is healed these are compared with the log, the bus and the ratings. Exit 1
    when anything was lost, doubled, shown too early or left stuck.
    """
    if nodes not in {1, 3}:
        fail("--nodes takes 1 or 3", code=2)
    harness = _harness()
    kinds = _kinds(faults, harness.havoc.Fault)
    plan = harness.run.Plan(seconds=minutes * 60, tables=tables, seed=seed, faults=kinds, nodes=nodes)
    report, folder = _run(harness, plan)
    if as_json:
        print_json(harness.summary.as_json(report))
    else:
        OUT.print(harness.summary.as_text(report))
    if keep or report.violations:
        ERR.print(f"kept in {folder}")
    else:
        shutil.rmtree(folder)
    raise typer.Exit(int(bool(report.violations)))


class _Harness:
    """The modules of the harness that a command needs."""

    def __init__(self) -> None:
        self.havoc, self.run, self.summary = (_module(name) for name in ("havoc", "run", "summary"))


def _module(name: str) -> Any:
    return import_module(f"tests.chaos.harness.{name}")


def _harness() -> _Harness:
    try:
        return _Harness()
    except ModuleNotFoundError as missing:
        fail(f"this command needs a source checkout with its test dependencies: no {missing.name}", code=2)


def _kinds(faults: str, kinds: Any) -> list[Any]:
    try:
        return [kinds(name.strip()) for name in faults.split(",") if name.strip()]
    except ValueError:
        fail(f"--faults takes some of {ALL}", code=2)


def _run(harness: _Harness, plan: Any) -> tuple[Any, Path]:
    from deploy.local.process import ServerFailed
    from engine.runtime import logs

    folder = Path(tempfile.mkdtemp(prefix="gouji-chaos-"))
    # The database's own account must be able to enter it too.
    folder.chmod(0o755)
    with ERR.status("starting") as status, (folder / "harness.jsonl").open("w") as journal:
        logs.configure("INFO", "json", journal)
        try:
            report = asyncio.run(harness.run.run(plan, folder, status.update))
        except ServerFailed as failure:
            fail(f"{failure}\nlogs and data are kept in {folder}")
    return report, folder
