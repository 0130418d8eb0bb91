"""`gouji up` as its user runs it: a process of its own that is asked, hurt and stopped."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.local.environment import SERVICES
from deploy.local.health import state_of
from deploy.local.process import LOOPBACK, command_line

READY_S = 60.0
GOUJI = [sys.executable, "-m", "services.cli"]


@dataclass(frozen=True)
class House:
    """A running installation."""

    process: subprocess.Popen[str]
    folder: Path
    addresses: dict[str, str]

    def serves(self) -> bool:
        return all(state_of(address) == "SERVING" for address in self.addresses.values())

    def postmaster(self) -> int:
        return int((self.folder / "postgres" / "cluster" / "postmaster.pid").read_text().split()[0])

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*GOUJI, *arguments], capture_output=True, text=True, timeout=60, check=False)


def eventually(holds: Callable[[], bool], within_s: float = READY_S) -> bool:
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with running() as house:
        yield house


@contextmanager
def running(*switches: str) -> Iterator[House]:
    folder = Path(tempfile.mkdtemp(prefix="gouji-up-"))
    folder.chmod(0o755)
    command = [*GOUJI, "up", "--data", str(folder), "--port", str(four_free_ports()), "--json", *switches]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        addresses = json.loads(process.stdout.readline())
        yield House(process, folder, addresses)
        process.terminate()
        assert process.wait(60) == 0
    shutil.rmtree(folder)


def test_every_service_serves(house: House) -> None:
    assert set(house.addresses) == set(SERVICES)
    assert house.serves()


def test_a_token_is_minted_for_it(house: House) -> None:
    assert house.run("token", "ada", "--data", str(house.folder)).stdout.count(".") == 2


@pytest.mark.timeout(180)
def test_it_heals_when_the_database_is_killed(house: House) -> None:
    killed = house.postmaster()

    os.kill(killed, signal.SIGKILL)

    assert eventually(lambda: house.postmaster() != killed)
    assert eventually(house.serves)


@pytest.mark.timeout(180)
def test_it_heals_when_a_service_is_killed(house: House) -> None:
    victim = next(pid for pid in processes() if "serve table" in command_line(pid) and parent(pid) == house.process.pid)

    os.kill(victim, signal.SIGKILL)

    assert eventually(lambda: not house.serves(), within_s=10)
    assert eventually(house.serves)


@pytest.mark.timeout(180)
def test_table_service_and_engine_may_be_one_process() -> None:
    with running("--together") as house:
        assert house.serves()
        assert house.addresses["engine"] == house.addresses["table"]
        lines = {pid: command_line(pid) for pid in processes()}
        ours = [line for pid, line in lines.items() if " serve " in line and parent(pid) == house.process.pid]
        served = {line.split(" serve ")[1].split()[0] for line in ours}

    assert served == {"together", "matchmaking", "ranking"}


def four_free_ports() -> int:
    """The first of four free ports in a row, where the system takes none for outgoing connections."""
    while True:
        first = random.randrange(20_000, 30_000)
        with ExitStack() as probes:
            try:
                for port in range(first, first + 4):
                    probes.enter_context(socket.create_server((LOOPBACK, port)))
            except OSError:
                continue
        return first


def processes() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
