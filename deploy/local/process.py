"""A child process with its log in a file: started, watched, stopped, killed.

Law: this file knows no server and no service. A child never outlives its stop, and one that an earlier, killed
supervisor left behind is found by its pid file and stopped before it can touch the same folder again.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

LOOPBACK = "127.0.0.1"
POLL_S = 0.02
TAIL_CHARS = 2000


class ServerFailed(Exception):
    """The process ended or did not become ready in time: read its log."""


@dataclass(frozen=True, slots=True)
class Account:
    """The system user that a child runs as, when it may not run as root."""

    uid: int
    gid: int


@dataclass(slots=True)
class ChildProcess:
    """One child. `env` is its whole environment (None: ours).

    With `ends_with_us` its standard input is a pipe that nobody writes to: it ends when we do, even killed.
    """

    argv: Sequence[str]
    log: Path
    env: Mapping[str, str] | None = None
    account: Account | None = None
    ends_with_us: bool = False
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def pid(self) -> int:
        """The process id; raises `ServerFailed` when it was never started."""
        if self._process is None:
            raise ServerFailed(f"{self.argv[0]} is not started")
        return self._process.pid

    def is_running(self) -> bool:
        """Whether it is alive now."""
        return self._process is not None and self._process.poll() is None

    def exit_code(self) -> int | None:
        """How it ended, None while it runs or before it started."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start it, or start it again, in a session of its own: the terminal's Ctrl-C reaches only its supervisor.

        Raises `ServerFailed` when it cannot be run.
        """
        self._close_input()
        try:
            self._process = self._spawn()
        except OSError as failure:
            raise ServerFailed(f"cannot run {self.argv[0]}: {failure.strerror}") from failure

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.argv,
                stdin=subprocess.PIPE if self.ends_with_us else subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=None if self.env is None else dict(self.env),
                start_new_session=True,
                user=None if self.account is None else self.account.uid,
                group=None if self.account is None else self.account.gid,
                extra_groups=None if self.account is None else [],
            )

    def ask_to_stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Ask it to stop and do not wait."""
        self._send(by)

    def stop(self, *, by: signal.Signals = signal.SIGTERM, grace_s: float = 10) -> None:
        """Ask it to stop, kill it after `grace_s` seconds; harmless when it is not running."""
        self.ask_to_stop(by)
        self.wait(grace_s)

    def wait(self, grace_s: float) -> None:
        """Wait until it has stopped, kill it after `grace_s` seconds; harmless when it is not running."""
        if self._process is None:
            return
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.kill()
        self._close_input()

    def kill(self) -> None:
        """End it without asking, as a power cut would."""
        if self._process is not None:
            self._send(signal.SIGKILL)
            self._process.wait()

    def failure(self, what: str) -> ServerFailed:
        """An error that tells the end of the log."""
        tail = self.log.read_text(errors="replace")[-TAIL_CHARS:] if self.log.exists() else ""
        return ServerFailed(f"{what} (exit code {self.exit_code()}), log {self.log}:\n{tail}")

    def _close_input(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def stop_orphan(pid_file: Path, marker: str, *, grace_s: float = 10) -> None:
    """Stop what the pid file names if it still runs and its command line contains `marker` (not a reused pid)."""
    pid = _pid_in(pid_file)
    if pid is None or marker not in command_line(pid):
        return
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGINT)
    deadline = time.monotonic() + grace_s
    while marker in command_line(pid):
        if time.monotonic() > deadline:
            raise ServerFailed(f"process {pid} of an earlier run does not stop")
        time.sleep(POLL_S)


def _pid_in(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text().split(maxsplit=1)[0])
    except (FileNotFoundError, IndexError, ValueError):
        return None


def command_line(pid: int) -> str:
    """The command line of a running process; empty when there is none."""
    if not Path("/proc/self").exists():
        listing = ["/bin/ps", "-o", "command=", "-p", str(pid)]
        return subprocess.run(listing, capture_output=True, text=True, check=False).stdout
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
