"""`gouji demo`: a whole installation for one match, and the proof that its log tells the truth.

Law: starts, plays, proves, shows, removes; the exit code is the proof's.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from services.cli.output import ERR, OUT, fail, print_json

if TYPE_CHECKING:
    from deploy.local.stack import Stack
    from services.cli.demo.evening import Evening, Places
    from services.cli.demo.proof import Proof

HOUR_MS = 3_600_000
SETTINGS = {
    "GOUJI_WITNESS": "true",
    # Six players in a hurry behind one address.
    "GOUJI_PLAYER_RATE": "1000",
    "GOUJI_PLAYER_BURST": "1000",
    "GOUJI_ADDRESS_RATE": "10000",
    "GOUJI_ADDRESS_BURST": "10000",
}


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the folder with logs, data and deals behind.")] = False,
    together: Annotated[bool, typer.Option("--together", help="Run table service and engine in one process.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Let six players queue and play a match of two deals over gRPC, then prove everything from the log.

    A fresh process rebuilds the table from its log and every state is compared with what the live engine said; both deals
    are exported and verified offline. Exit 0 only when all of it held.
    """
    from deploy.local.process import ServerFailed
    from services.cli.demo.evening import Spoiled

    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="gouji-demo-"))
    try:
        evening, proof = _play_and_prove(folder, together=together)
    except (ServerFailed, Spoiled) as failure:
        fail(f"{failure}\nlogs and data are kept in {folder}")
    _show(evening, proof, time.monotonic() - began, as_json=as_json)
    _clear(folder, keep=keep or bool(proof.problems))
    raise typer.Exit(int(bool(proof.problems)))


def _clear(folder: Path, *, keep: bool) -> None:
    if keep:
        ERR.print(f"kept in {folder}")
    else:
        shutil.rmtree(folder)


def _play_and_prove(folder: Path, *, together: bool) -> tuple[Evening, Proof]:
    from deploy.local.stack import Stack
    from engine.runtime import logs
    from services.cli.demo.evening import spend
    from services.cli.demo.proof import prove

    # The database's own account must be able to enter it too.
    folder.chmod(0o755)
    stack = Stack(folder, settings=SETTINGS, together=together)
    with ERR.status("starting") as status, (folder / "logs" / "players.jsonl").open("w") as journal:
        logs.configure("INFO", "json", journal)
        try:
            stack.start(lambda part: status.update(f"starting {part}"))
            evening = asyncio.run(spend(_places(stack), status.update))
            status.update("rebuilding the table from its log")
            proof = prove(evening, folder, stack.installation.settings_of("engine"))
        finally:
            status.update("stopping")
            stack.stop()
    return evening, proof


def _places(stack: Stack) -> Places:
    from deploy.local.environment import token_key
    from engine.runtime.clock import SystemClock
    from engine.runtime.identity import Minter, Role
    from services.cli.demo.evening import PLAYERS, Places

    minter = Minter(token_key(stack.folder), "gouji", SystemClock())
    tokens = {player: minter.mint(player, Role.PLAYER, HOUR_MS) for player in PLAYERS}
    return Places(stack.addresses, tokens, stack.nats.url())


def _show(evening: Evening, proof: Proof, seconds: float, *, as_json: bool) -> None:
    from services.cli.demo.summary import table_of

    if as_json:
        print_json({"table_id": evening.table_id, "points": evening.points, "seconds": seconds} | asdict(proof))
        return
    OUT.print(table_of(evening))
    for problem in proof.problems[:20]:
        OUT.print(f"[red]✗[/] {escape(problem)}")
    verdict = "[green]everything held[/]" if not proof.problems else f"[red]{len(proof.problems)} problems[/]"
    OUT.print(
        f"table {evening.table_id}: {proof.versions} events, {len(evening.witnessed)} live states compared with the log, "
        f"{proof.deals} deals verified offline, {evening.updates} updates to players, {seconds:.0f} s: {verdict}"
    )
