"""NATS as three servers that keep every stream three times.

Law: the house's own server and configuration, told of each other by the command line; clients are told of no server but
those that they were given, so that none gets past its proxy.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deploy.local.nats_server import USERS, NatsServer
from deploy.local.process import LOOPBACK, free_port
from deploy.local.secrets_file import kept

NAMES = ("nats1", "nats2", "nats3")


class Node(NatsServer):
    """One server of a cluster. `folder` holds its streams; passwords are shared with the other nodes beside it."""

    def __init__(self, folder: Path, place: int, routes: Sequence[int]) -> None:
        super().__init__(folder)
        self._place = place
        self._routes = routes

    def _command(self) -> list[str]:
        others = ",".join(f"nats://{LOOPBACK}:{port}" for port in self._routes)
        own = ["--name", self._folder.name, "--cluster_name", "gouji", "--no_advertise"]
        return [
            *super()._command(),
            *own,
            "--cluster",
            f"nats://{LOOPBACK}:{self._routes[self._place]}",
            "--routes",
            others,
        ]

    def _passwords(self) -> dict[str, str]:
        return kept(self._folder.parent / "nats_passwords.json", USERS)


def cluster(folder: Path) -> dict[str, NatsServer]:
    """Three servers in a folder, by name."""
    routes = [free_port() for _ in NAMES]
    return {name: Node(folder / name, place, routes) for place, name in enumerate(NAMES)}
