"""`gouji up`: a whole installation on this machine, until it is told to stop.

Law: starts `deploy.local.stack`, tells where everything is, waits.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Annotated

import typer

from services.cli.output import ERR, OUT, fail, print_json

DATA_OPTION = typer.Option(
    "--data", help="The installation's folder; .gouji here, or /var/lib/gouji as root.", envvar="GOUJI_DATA"
)
FIRST_PORT = 7100
PORTS = ("table", "matchmaking", "ranking", "engine")


def data_folder(given: Path | None) -> Path:
    """The installation's folder. As root it must be one that the database's own account can reach."""
    if given is not None:
        return given
    return Path("/var/lib/gouji") if os.geteuid() == 0 else Path(".gouji")


def up(
    folder: Annotated[Path | None, DATA_OPTION] = None,
    port: Annotated[int, typer.Option(help="The first of four ports in a row.", min=1024, max=65532)] = FIRST_PORT,
    together: Annotated[
        bool,
        typer.Option("--together", help="Run table service and engine in one process.", envvar="GOUJI_TOGETHER"),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the addresses as JSON.")] = False,
) -> None:
    """Start PostgreSQL, NATS and every service; Ctrl-C stops them. State stays in the folder."""
    from deploy.local.process import ServerFailed
    from deploy.local.stack import Stack

    place = data_folder(folder)
    ports = dict(zip(PORTS, range(port, port + len(PORTS)), strict=True))
    stack = Stack(place, ports=ports, together=together)
    with _stop_signals() as stopped:
        try:
            stack.start(lambda part: ERR.print(f"starting {part} …"))
        except ServerFailed as failure:
            fail(str(failure))
        try:
            _tell(stack.addresses, place, as_json=as_json)
            stack.watch(stopped)
        finally:
            ERR.print("stopping …")
            stack.stop()


def _tell(addresses: Mapping[str, str], place: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(dict(addresses))
        return
    for name, address in addresses.items():
        OUT.print(f"{name:<12} {address}")
    OUT.print(f"logs         {place / 'logs'}")
    OUT.print(f"operating    set -a; . {place / 'operator.env'}")
    OUT.print(f"a token      gouji token PLAYER --data {place}")


@contextmanager
def _stop_signals() -> Iterator[Event]:
    """An event that is set by Ctrl-C or a polite kill; the second one interrupts."""
    stopped = Event()

    def stop(_: int, __: FrameType | None) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
