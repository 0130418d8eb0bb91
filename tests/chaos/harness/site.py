"""An installation that can be hurt: two engines, two table services, matchmaking, ranking, Postgres and NATS, each link
through a proxy of ours.

Law: starts, stops and starts again; decides nothing. What ends by itself is started again, as a supervisor would, and
counted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from psycopg.conninfo import make_conninfo

from deploy import schemas
from deploy.local.environment import Installation, token_key
from deploy.local.health import state_of
from deploy.local.nats_server import NatsServer
from deploy.local.postgres_server import PostgresServer
from deploy.local.process import LOOPBACK, ChildProcess, free_port
from engine.runtime.clock import SystemClock
from engine.runtime.identity import Minter, Role
from tests.chaos.harness import disk, trail
from tests.chaos.harness.cluster import cluster
from tests.chaos.harness.havoc import Targets
from tests.chaos.harness.outcries import has_given_up_its_start, is_outcry
from tests.support.proxy import FaultyProxy

ENGINES = ("engine1", "engine2")
TABLES = ("table1", "table2")
OTHERS = ("matchmaking", "ranking")
PROCESSES = (*ENGINES, *TABLES, *OTHERS)
WITH_DATABASE = (*ENGINES, *OTHERS)
CLIENTS = "clients"
PROGRAM = "services.cli"

READY_S = 90.0
WATCH_S = 0.3
GRACE_S = 15.0
CLEAN = (0, -signal.SIGTERM)
"""How a process ends that was asked to: by itself, or at once when it had not begun yet."""
HOUR_MS = 3_600_000

SETTINGS = {
    "GOUJI_LEASE_TTL_MS": "2000",
    "GOUJI_LEASE_RENEW_MS": "500",
    "GOUJI_SWEEP_MS": "300",
    "GOUJI_TURN_MS": "3000",
    "GOUJI_WINDOW_MS": "2000",
    "GOUJI_BETWEEN_MS": "10000",
    "GOUJI_GATHERING_MS": "120000",
    "GOUJI_LATE_MS": "2000",
    "GOUJI_GRACE": "8",
    "GOUJI_WITNESS": "true",
    "GOUJI_PLAYER_RATE": "1000",
    "GOUJI_PLAYER_BURST": "1000",
    "GOUJI_ADDRESS_RATE": "100000",
    "GOUJI_ADDRESS_BURST": "100000",
    "GOUJI_TABLE_OPENINGS_HOURLY": "100000",
    "GOUJI_TABLE_OPENINGS_BURST": "1000",
}


@dataclass(frozen=True, slots=True)
class Link:
    """Who connects to what: `engine1>postgres`, `clients>table2`."""

    here: str
    there: str

    @property
    def name(self) -> str:
        """How the link is written."""
        return f"{self.here}>{self.there}"


def links(buses: Sequence[str]) -> list[Link]:
    """Every link of an installation with these servers of NATS."""
    return [
        *(Link(process, bus) for process in PROCESSES for bus in buses),
        *(Link(process, "postgres") for process in WITH_DATABASE),
        *(Link(CLIENTS, service) for service in (*TABLES, "matchmaking")),
    ]


def targets(buses: Sequence[str]) -> Targets:
    """What can be hit of it."""
    names = [link.name for link in links(buses)]
    return Targets(
        processes=PROCESSES,
        buses=buses,
        links=names,
        database_links=[name for name in names if name.endswith(">postgres")],
        engines=ENGINES,
    )


TARGETS = targets(("nats",))
"""What can be hit where there is one NATS."""


class Site:
    """One installation in a folder that the database's account can enter. Used as a context; `start` makes it serve.

    `settings`: of its services; `program`: what each is served by. `ended`: how often each process ended by itself; `dsn`: the database as its owner, past every proxy.
    """

    def __init__(
        self,
        folder: Path,
        engine_module: str = "",
        *,
        nodes: int = 1,
        settings: Mapping[str, str] = SETTINGS,
        program: str = PROGRAM,
    ) -> None:
        self.folder = folder
        self.postgres = PostgresServer(folder / "postgres")
        self.buses = {"nats": NatsServer(folder / "nats")} if nodes == 1 else cluster(folder)
        self.targets = targets(tuple(self.buses))
        self.proxies: dict[str, FaultyProxy] = {}
        self.ended: Counter[str] = Counter()
        self.unclean: list[str] = []
        self.dsn = ""
        self._engine_module = engine_module
        self._program = program
        self._ports: dict[str, int] = {}
        self._installation = Installation.of(folder, self.postgres, next(iter(self.buses.values())), {}, settings)
        self._children: dict[str, ChildProcess] = {}
        self._down: set[str] = set()
        self._paused: set[str] = set()
        self._minter = Minter(token_key(folder), "gouji", SystemClock())
        self._context = AsyncExitStack()
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._context.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await asyncio.to_thread(self._stop)
        await self._context.aclose()

    @property
    def bus_url(self) -> str:
        """The bus as its operator, past every proxy: a comma between servers."""
        return ",".join(bus.url() for bus in self.buses.values())

    def token(self, player: str) -> str:
        """A player's token."""
        return self._minter.mint(player, Role.PLAYER, HOUR_MS)

    def address(self, service: str) -> str:
        """Where clients reach a service."""
        return f"{LOOPBACK}:{self._way(CLIENTS, service)}"

    async def start(self) -> None:
        """Start everything and wait until it serves. Raises `ServerFailed`."""
        await asyncio.to_thread(self._start_servers)
        # Only now, lest somebody else takes one before it is used.
        self._ports = {process: free_port() for process in PROCESSES}
        for link in links(tuple(self.buses)):
            proxy = FaultyProxy(self._port(link.there))
            self.proxies[link.name] = await self._context.enter_async_context(proxy)
        for process in PROCESSES:
            self._children[process] = self._child(process)
            self._children[process].start()
        await asyncio.gather(*(asyncio.to_thread(self._wait, process) for process in PROCESSES))
        self._watching = asyncio.create_task(self._watch())

    async def kill(self, name: str) -> None:
        """End a process or a server as a power cut would, and leave it so."""
        self._down.add(name)
        await asyncio.to_thread(self._thing(name).kill)

    async def end(self, name: str) -> None:
        """Ask a process to stop, as an upgrade does; one that is not gone in time, or fails, is an outcry.

        What cannot reach its database or bus has to leave something undone, and says so with its exit code, as does what was
        ending already because it could not start.
        """
        self._down.add(name)
        child, is_cut_off = self._children[name], self._is_cut_off(name)
        stopping = asyncio.create_task(asyncio.to_thread(child.stop, grace_s=GRACE_S))
        while not stopping.done():
            await asyncio.wait({stopping}, timeout=WATCH_S)
            is_cut_off |= self._is_cut_off(name)
        await stopping
        may_fail = is_cut_off or has_given_up_its_start(self._lines(name))
        if child.exit_code() not in CLEAN and not (child.exit_code() == 1 and may_fail):
            self.unclean.append(f"{name} stopped with exit code {child.exit_code()}")

    async def revive(self, name: str) -> None:
        """Start what was killed or has ended."""
        await asyncio.to_thread(self._thing(name).start)
        self._down.discard(name)

    def pause(self, name: str) -> None:
        """Stop a process in its tracks."""
        self._paused.add(name)
        os.kill(self._thing(name).pid, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let a stopped process go on."""
        self._paused.discard(name)
        if self._thing(name).is_running():
            os.kill(self._thing(name).pid, signal.SIGCONT)

    def fill(self, bus: str) -> None:
        """Leave a server of NATS no room on its disk."""
        disk.fill(self.buses[bus].pid)

    async def clear(self, bus: str) -> None:
        """Give it room again and start it anew, as an operator must, for it keeps nothing before that."""
        disk.clear(self.buses[bus].pid)
        await asyncio.to_thread(self.buses[bus].restart)

    def turn_clock(self, engine: str, by_ms: int) -> None:
        """Make an engine believe that it is so much later."""
        path = self._clock(engine)
        path.with_suffix(".new").write_text(str(by_ms))
        path.with_suffix(".new").rename(path)

    async def heal(self) -> None:
        """Undo everything and wait until all serve again. Raises `ServerFailed`."""
        for proxy in self.proxies.values():
            proxy.heal()
        await asyncio.gather(*(asyncio.to_thread(self._wait, process) for process in PROCESSES))

    def outcries(self) -> list[str]:
        """What processes logged that must never be logged."""
        lines = (f"{child}: {line}" for child in self._children for line in self._lines(child))
        cries = [line[:500] for line in lines if is_outcry(line)]
        return [*cries, *self.unclean]

    def _is_cut_off(self, process: str) -> bool:
        """Whether the process cannot reach a server just now."""
        ways = [link for link in links(tuple(self.buses)) if link.here == process]
        return any(not self.proxies[way.name].is_open or way.there in self._down | self._paused for way in ways)

    def _thing(self, name: str) -> ChildProcess | PostgresServer | NatsServer:
        return self._servers.get(name) or self._children[name]

    @property
    def _servers(self) -> Mapping[str, PostgresServer | NatsServer]:
        return {"postgres": self.postgres, **self.buses}

    def _port(self, name: str) -> int:
        return self._servers[name].port if name in self._servers else self._ports[name]

    def _log(self, process: str) -> Path:
        return self.folder / f"{process}.jsonl"

    def _lines(self, process: str) -> Sequence[str]:
        return self._log(process).read_text(errors="replace").splitlines()

    def _clock(self, engine: str) -> Path:
        return self.folder / f"{engine}.clock"

    def _start_servers(self) -> None:
        for server in self._servers.values():
            server.start()
        self.dsn = self._installation.database()
        schemas.migrate(self.dsn)
        trail.lay(self.dsn)
        schemas.let_in(self.dsn, self._installation.database_passwords)

    def _child(self, process: str) -> ChildProcess:
        service = process.rstrip("12")
        environment = self._installation.settings_of(service) | {
            "GOUJI_GRPC_PORT": str(self._ports[process]),
            "GOUJI_NATS_SERVERS": ",".join(f"nats://{LOOPBACK}:{self._way(process, bus)}" for bus in self.buses),
            "GOUJI_NATS_REPLICAS": str(len(self.buses)),
        }
        if process in WITH_DATABASE:
            way = self._way(process, "postgres")
            environment["GOUJI_POSTGRES_DSN"] = make_conninfo(environment["GOUJI_POSTGRES_DSN"], port=way)
        if process in ENGINES:
            environment["GOUJI_CHAOS_CLOCK"] = str(self._clock(process))
        return ChildProcess(self._command(service), self._log(process), env=environment, ends_with_us=True)

    def _way(self, here: str, there: str) -> int:
        """The port of the proxy on a link."""
        return self.proxies[Link(here, there).name].port

    def _command(self, service: str) -> Sequence[str]:
        if service == "engine" and self._engine_module:
            return [sys.executable, "-m", self._engine_module]
        return [sys.executable, "-m", self._program, "serve", service, "--with-parent"]

    def _wait(self, process: str) -> None:
        deadline = time.monotonic() + READY_S
        while state_of(f"{LOOPBACK}:{self._ports[process]}") != "SERVING":
            if time.monotonic() > deadline or (self._watching is None and not self._children[process].is_running()):
                raise self._children[process].failure(f"{process} does not serve")
            time.sleep(WATCH_S)

    async def _watch(self) -> None:
        while True:
            for process, child in self._children.items():
                if process not in self._down and not child.is_running():
                    self.ended[process] += 1
                    child.start()
            await asyncio.sleep(WATCH_S)

    def _stop(self) -> None:
        for name in self._children:
            self.resume(name)
        for child in self._children.values():
            child.ask_to_stop()
        for child in self._children.values():
            child.wait(GRACE_S)
        for server in self._servers.values():
            server.stop()
