"""A whole installation in one folder: PostgreSQL, NATS and every service as a process of its own.

Law: starts in order of need, watches, starts again what ends by itself, stops in the opposite order. What a service is
told stands in `environment.py`; what it says goes to `logs/<service>.jsonl`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import psycopg
import structlog

from deploy import schemas
from deploy.local.environment import Installation
from deploy.local.health import state_of
from deploy.local.nats_server import NatsServer
from deploy.local.postgres_server import PostgresServer
from deploy.local.process import ChildProcess, ServerFailed

READY_S = 60.0
POLL_S = 0.1
GRACE_S = 20.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
CALM_S = 60.0
PARTITIONS_S = 3600.0
PARTITIONS_AGAIN_S = 60.0

log = structlog.get_logger()


@dataclass(slots=True)
class Watched:
    """Something that is started again when it ends by itself, after a pause that doubles until it has run calmly."""

    name: str
    is_running: Callable[[], bool]
    start: Callable[[], None]
    pause_s: float = FIRST_PAUSE_S
    started_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None

    def look(self, now: float) -> None:
        """See whether it still runs, and start it again once its pause is over."""
        if self.is_running():
            return
        if self.ended_at is None:
            self._note_end(now)
        elif now >= self.ended_at + self.pause_s:
            self._start_again(now)

    def _note_end(self, now: float) -> None:
        if now - self.started_at > CALM_S:
            self.pause_s = FIRST_PAUSE_S
        self.ended_at = now
        log.error("child_ended", child=self.name, pause_s=self.pause_s)

    def _start_again(self, now: float) -> None:
        self.pause_s = min(self.pause_s * 2, LONGEST_PAUSE_S)
        self.started_at, self.ended_at = now, None
        try:
            self.start()
        except ServerFailed as failure:
            log.error("child_did_not_start", child=self.name, reason=str(failure))  # noqa: TRY400 -- the reason is whole
        else:
            log.info("child_started", child=self.name)


@dataclass(slots=True)
class Upkeep:
    """Room in the log for the coming days, made every hour; sooner again when the database was out of reach."""

    make_room: Callable[[], object]
    due: float = field(default_factory=lambda: time.monotonic() + PARTITIONS_S)

    def look(self, now: float) -> None:
        """Make room when it is time."""
        if now < self.due:
            return
        try:
            self.make_room()
        except psycopg.OperationalError as failure:
            self.due = now + PARTITIONS_AGAIN_S
            log.warning("no_partitions_made", reason=str(failure))
        else:
            self.due = now + PARTITIONS_S


class Stack:
    """One installation.

    `ports` fixes the ports of services, the others take free ones. `settings` are environment variables for all of them.
    `together`: table service and engine are one process, `together`, which listens where the table service would.
    """

    def __init__(
        self,
        folder: Path,
        *,
        ports: Mapping[str, int] | None = None,
        settings: Mapping[str, str] | None = None,
        together: bool = False,
    ) -> None:
        self.folder = folder.absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "logs").mkdir(exist_ok=True)
        self.postgres = PostgresServer(self.folder / "postgres")
        self.nats = NatsServer(self.folder / "nats")
        self.installation = Installation.of(
            self.folder, self.postgres, self.nats, ports or {}, settings or {}, together=together
        )
        self._services: dict[str, ChildProcess] = {}
        self._watched: list[Watched] = []

    @property
    def addresses(self) -> Mapping[str, str]:
        """Where each service listens."""
        return self.installation.addresses

    def start(self, progress: Callable[[str], None] = lambda _: None) -> None:
        """Start everything and wait until it serves; stops it all again when something does not."""
        try:
            self._start(progress)
        except BaseException:
            self.stop()
            raise

    def watch(self, until: Event) -> None:
        """Start again what ends by itself and keep room in the log for the coming days, until the event is set."""
        upkeep = Upkeep(lambda: schemas.add_partitions(self.installation.database()))
        while not until.wait(POLL_S):
            now = time.monotonic()
            for child in self._watched:
                child.look(now)
            upkeep.look(now)

    def stop(self) -> None:
        """Stop services, then the servers that they use; harmless when repeated."""
        for child in reversed(self._services.values()):
            child.ask_to_stop()
        for child in reversed(self._services.values()):
            child.wait(GRACE_S)
        self.nats.stop()
        self.postgres.stop()

    def service(self, name: str) -> ChildProcess:
        """The process of this name; raises `KeyError`."""
        return self._services[name]

    def _start(self, progress: Callable[[str], None]) -> None:
        progress("PostgreSQL")
        self.postgres.start()
        self._watched.append(Watched("postgres", self.postgres.is_running, self.postgres.start))
        progress("NATS")
        self.nats.start()
        self._watched.append(Watched("nats", self.nats.is_running, self.nats.start))
        progress("database schema")
        self._migrate()
        for name in self.installation.processes:
            self._start_service(name)
        for name in self.installation.processes:
            progress(name)
            self._wait_until_serving(name)

    def _migrate(self) -> None:
        dsn = self.installation.database()
        schemas.migrate(dsn)
        schemas.let_in(dsn, self.installation.database_passwords)
        self.installation.write_operator_settings()

    def _start_service(self, name: str) -> None:
        command = [sys.executable, "-m", "services.cli", "serve", name, "--with-parent"]
        journal = self.folder / "logs" / f"{name}.jsonl"
        child = ChildProcess(command, journal, env=self.installation.settings_of(name), ends_with_us=True)
        child.start()
        self._services[name] = child
        self._watched.append(Watched(name, child.is_running, child.start))

    def _wait_until_serving(self, name: str) -> None:
        child, deadline = self._services[name], time.monotonic() + READY_S
        address = self.installation.address_of(name)
        while state_of(address) != "SERVING":
            if not child.is_running() or time.monotonic() > deadline:
                raise child.failure(f"{name} does not serve")
            time.sleep(POLL_S)
