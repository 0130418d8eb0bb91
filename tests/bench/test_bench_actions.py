"""How many actions an installation acknowledges, over gRPC to all six players of each table, and how long each waits.

Law: a real stack with its data on disk; the players share the cores with it, so rates are of the whole and CPU is told
for each process. Bounded in time; results that matter are kept in `results.md`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import quantiles

import grpc
import pytest
import uvloop

from deploy.local.environment import token_key
from deploy.local.stack import Stack
from engine.runtime.clock import SystemClock
from engine.runtime.identity import Minter, Role
from engine.runtime.uuid7 import uuid7
from services.bots.table_client import TableClient
from tests.support.cheap_player import CheapPlayer, Tally

WARM_S = 5.0
MEASURED_S = 15.0
DEALS = 100
HOUR_MS = 3_600_000
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
WIDE = {
    f"GOUJI_{name}": "1000000"
    for name in (
        "PLAYER_RATE",
        "PLAYER_BURST",
        "ADDRESS_RATE",
        "ADDRESS_BURST",
        "TABLE_ACTIONS_RATE",
        "TABLE_ACTIONS_BURST",
        "TABLE_OPENINGS_HOURLY",
        "TABLE_OPENINGS_BURST",
    )
}


@pytest.fixture(scope="module", params=["apart", "together"])
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    folder = Path(tempfile.mkdtemp(prefix="gouji-bench-"))
    folder.chmod(0o755)
    stack = Stack(folder, settings=WIDE, together=request.param == "together")
    stack.start()
    yield stack
    stack.stop()
    shutil.rmtree(folder, ignore_errors=True)


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used, with its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) * TICK_S


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def used(stack: Stack) -> dict[str, float]:
    """CPU seconds of every process of the installation, and of the players."""
    postmaster = int((stack.folder / "postgres" / "cluster" / "postmaster.pid").read_text().split()[0])
    services = {name: cpu_s(stack.service(name).pid) for name in stack.installation.processes}
    postgres = sum(map(cpu_s, [postmaster, *children(postmaster)]))
    return services | {"postgres": postgres, "nats": cpu_s(stack.nats.pid), "players": time.process_time()}


async def open_table(minter: Minter, channel: grpc.aio.Channel, number: int, tally: Tally) -> list[asyncio.Task[None]]:
    """Open a table and let six players play at it; the tasks of the players."""
    owner = TableClient(channel, lambda: minter.mint(f"owner{number}", Role.PLAYER, HOUR_MS))
    table_id = await owner.open_table(str(uuid7()), "qingdao-charter", DEALS)
    tasks = []
    for seat in range(6):
        token = minter.mint(f"player{number}-{seat}", Role.PLAYER, HOUR_MS)
        player = CheapPlayer(channel, token, tally, seed=number * 6 + seat)
        await player.sit(table_id, seat)
        tasks.append(asyncio.create_task(player.play(table_id)))
    return tasks


async def load(stack: Stack, tables: int) -> tuple[Tally, dict[str, float], float]:
    """Play at so many tables for a while: what players met, CPU by process, seconds."""
    minter = Minter(token_key(stack.folder), "gouji", SystemClock())
    tally = Tally()
    async with AsyncExitStack() as channels:
        own = [("grpc.use_local_subchannel_pool", 1)]
        dialled = [grpc.aio.insecure_channel(stack.addresses["table"], options=own) for _ in range(tables)]
        for channel in dialled:
            channels.push_async_callback(channel.close)
        opened = await asyncio.gather(
            *(open_table(minter, channel, number, tally) for number, channel in enumerate(dialled))
        )
        playing = [player for players in opened for player in players]
        await asyncio.sleep(WARM_S)
        tally.clear()
        before, began = used(stack), time.perf_counter()
        await asyncio.sleep(MEASURED_S)
        seconds, after = time.perf_counter() - began, used(stack)
        for task in playing:
            assert not task.done() or task.exception() is None
            task.cancel()
        await asyncio.wait(playing)
    return tally, {name: after[name] - before[name] for name in after}, seconds


def told(mode: str, tables: int, tally: Tally, cpu: Mapping[str, float], seconds: float) -> str:
    """A row of the table in `results.md`."""
    actions = len(tally.waits)
    cuts = quantiles(tally.waits, n=100)
    spent = " ".join(f"{name} {1e6 * used_s / actions:.0f}" for name, used_s in cpu.items())
    return (
        f"| {mode} | {tables} | {actions / seconds:.0f} | {cuts[49] * 1000:.1f} ms | {cuts[98] * 1000:.1f} ms | {spent} |"
        f" {tally.frames / actions:.1f} frames, {tally.frame_bytes / tally.frames:.0f} bytes each"
    )


@pytest.mark.timeout(60)
@pytest.mark.parametrize("tables", [1, 10, 40])
def test_actions_of_full_tables_are_acknowledged(stack: Stack, tables: int) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        tally, cpu, seconds = runner.run(load(stack, tables))

    mode = "together" if "together" in stack.installation.processes else "apart"
    print(f"\n{told(mode, tables, tally, cpu, seconds)}")  # noqa: T201 - what a benchmark is run for
    assert tally.waits
    assert not tally.faults
