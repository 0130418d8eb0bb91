"""PostgreSQL, NATS and engine processes of a test's own, to be killed as often as it likes.

Law: every process is one that this file started, and is gone when the test is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg import conninfo

from deploy import schemas
from deploy.local.nats_server import NatsServer
from deploy.local.postgres_server import PostgresServer
from deploy.local.process import LOOPBACK, ChildProcess
from tests.support.standby import follow, promote

BACKENDS_S = 0.5
"""For the backends of a killed server to notice and end."""

_PASSWORDS = {"engine": "engine-of-a-test"}
_OUTCRIES = ("quarantined", "critical", "never retrieved", "Traceback", "facts parked")
_QUICK = {
    "GOUJI_LEASE_TTL_MS": "2000",
    "GOUJI_LEASE_RENEW_MS": "500",
    "GOUJI_SWEEP_MS": "200",
    "GOUJI_LOG_FORMAT": "json",
    "GOUJI_GRACE": "10",
}


class EngineSite:
    """Servers and engines in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.postgres = PostgresServer(folder / "postgres")
        self.nats = NatsServer(folder / "nats")
        self.standby: PostgresServer | None = None
        self.engines: list[ChildProcess] = []
        self.dsn = ""

    def start(self) -> None:
        """Start the servers and make the database."""
        self.postgres.start()
        self.nats.start()
        self.dsn = self.postgres.create_database("gouji")
        schemas.migrate(self.dsn)
        schemas.let_in(self.dsn, _PASSWORDS)

    def engine(self, **settings: str) -> ChildProcess:
        """Start another engine."""
        log = self._folder / f"engine{len(self.engines)}.jsonl"
        dsn = self.postgres.dsn("gouji", user=schemas.role("engine"), password=_PASSWORDS["engine"])
        env = {
            "GOUJI_POSTGRES_DSN": self._wherever_it_is(dsn),
            "GOUJI_NATS_SERVERS": self.nats.address,
            "GOUJI_NATS_USER": "engine",
            "GOUJI_NATS_PASSWORD": self.nats.password("engine"),
        }
        child = ChildProcess(
            [sys.executable, "-m", "engine.service.main"], log, env={**os.environ, **_QUICK, **env, **settings}
        )
        child.start()
        self.engines.append(child)
        return child

    def add_standby(self) -> None:
        """Give the database a standby that has every commit before it is acknowledged."""
        self.standby = follow(self.postgres, self._folder / "postgres", self._folder / "standby")
        self.dsn = self._wherever_it_is(self.dsn)

    def fail_over(self) -> None:
        """Lose the primary for good and let the standby take over."""
        assert self.standby is not None
        self.postgres.kill()
        promote(self.standby)

    def _wherever_it_is(self, dsn: str) -> str:
        """Let a client find the primary among all servers."""
        ports = [server.port for server in (self.postgres, self.standby) if server is not None]
        return conninfo.make_conninfo(
            dsn,
            host=",".join([LOOPBACK] * len(ports)),
            port=",".join(map(str, ports)),
            target_session_attrs="read-write",
        )

    def keep_copy(self) -> None:
        """Copy the database as it is now."""
        self._put(self._folder / "postgres" / "cluster", self._folder / "copy")

    def go_back(self) -> None:
        """Lose what was stored since the copy, as a failover to a standby that was behind does."""
        self._put(self._folder / "copy", self._folder / "postgres" / "cluster")

    def _put(self, what: Path, where: Path) -> None:
        """Copy a folder with its owners and modes in place of another, while no server is at work on them."""
        self.postgres.kill()
        time.sleep(BACKENDS_S)
        shutil.rmtree(where, ignore_errors=True)
        subprocess.run(["/bin/cp", "-a", what, where], check=True)
        self.postgres.start()

    def outcry(self) -> list[str]:
        """What the engines logged that must never be logged."""
        lines = (line for child in self.engines for line in child.log.read_text().splitlines())
        return [line for line in lines if any(cry in line for cry in _OUTCRIES)]

    def stop(self) -> None:
        """Stop everything."""
        for child in self.engines:
            child.kill()
        self.nats.stop()
        if self.standby is not None:
            self.standby.stop()
        self.postgres.stop()


@contextmanager
def site_in(folder: Path) -> Iterator[EngineSite]:
    """A site that runs within the block."""
    site = EngineSite(folder)
    try:
        site.start()
        yield site
    finally:
        site.stop()
