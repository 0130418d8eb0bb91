"""The life of a process: in order up, in reverse down, and nothing half alive."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import urllib.request

import pytest
from prometheus_client import Counter

from engine.runtime.lifecycle import Lifecycle
from engine.runtime.telemetry import MetricsPort, new_registry


class Parts:
    """Parts that note when they stop."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    def add(self, life: Lifecycle, name: str, *, broken: bool = False, slow: bool = False) -> None:
        async def stop() -> None:
            if slow:
                await asyncio.sleep(60)
            self.stopped.append(name)
            if broken:
                raise ValueError(name)

        life.on_stop(name, stop)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_everything_in_reverse_order(number: signal.Signals) -> None:
    parts = Parts()

    async def compose(life: Lifecycle) -> None:
        parts.add(life, "store")
        parts.add(life, "bus")
        parts.add(life, "server")
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), number)

    assert await Lifecycle().run(compose) == 0
    assert parts.stopped == ["server", "bus", "store"]


async def test_a_start_that_fails_stops_what_had_started() -> None:
    parts = Parts()

    async def compose(life: Lifecycle) -> None:
        parts.add(life, "store")
        raise ValueError("no bus")

    assert await Lifecycle().run(compose) == 1
    assert parts.stopped == ["store"]


async def test_a_start_that_hangs_is_given_up_when_asked_to_stop() -> None:
    parts = Parts()

    async def compose(life: Lifecycle) -> None:
        parts.add(life, "store")
        asyncio.get_running_loop().call_later(0.05, life.ask_to_stop)
        await asyncio.sleep(60)

    async with asyncio.timeout(5):
        assert await Lifecycle().run(compose) == 0
    assert parts.stopped == ["store"]


async def test_a_task_that_dies_takes_the_process_down() -> None:
    parts = Parts()

    async def work() -> None:
        await asyncio.sleep(0.05)
        raise ValueError("broken")

    async def compose(life: Lifecycle) -> None:
        parts.add(life, "store")
        life.spawn("work", work())

    async with asyncio.timeout(5):
        assert await Lifecycle().run(compose) == 1
    assert parts.stopped == ["store"]


async def test_a_task_that_is_done_takes_nothing_down() -> None:
    done = asyncio.Event()

    async def warm_up() -> None:
        done.set()

    async def compose(life: Lifecycle) -> None:
        life.spawn("warm up", warm_up())
        await done.wait()
        asyncio.get_running_loop().call_later(0.05, life.ask_to_stop)

    assert await Lifecycle().run(compose) == 0


async def test_tasks_are_cancelled_in_their_turn() -> None:
    parts, ended = Parts(), list[str]()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.extend(("work", *parts.stopped))

    async def compose(life: Lifecycle) -> None:
        parts.add(life, "store")
        life.spawn("work", work())
        parts.add(life, "server")
        asyncio.get_running_loop().call_later(0.05, life.ask_to_stop)

    assert await Lifecycle().run(compose) == 0
    assert ended == ["work", "server"]


async def test_a_part_that_cannot_stop_does_not_keep_the_others_from_it() -> None:
    parts = Parts()

    async def compose(life: Lifecycle) -> None:
        parts.add(life, "store")
        parts.add(life, "bus", broken=True)
        life.ask_to_stop()

    assert await Lifecycle().run(compose) == 1
    assert parts.stopped == ["bus", "store"]


async def test_parts_that_do_not_stop_in_time_are_left_and_the_others_get_their_turn() -> None:
    parts, life = Parts(), Lifecycle(grace=0.4)

    async def compose(life: Lifecycle) -> None:
        parts.add(life, "store", slow=True)
        parts.add(life, "leases")
        parts.add(life, "list", slow=True)
        parts.add(life, "server")
        life.ask_to_stop()

    async with asyncio.timeout(5):
        assert await life.run(compose) == 1
    assert parts.stopped == ["server", "leases"]
    assert life.left == ["list", "store"]


STUBBORN = """
import asyncio, sys
from engine.runtime.lifecycle import run

async def compose(life):
    async def stop():
        print("stopping", flush=True)
        await asyncio.sleep(60)
    life.on_stop("stubborn", stop)
    print("started", flush=True)

sys.exit(run(compose))
"""


def test_a_second_signal_ends_the_process_at_once() -> None:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        while child.stdout.readline() != b"started\n":
            pass
        child.send_signal(signal.SIGTERM)
        while child.stdout.readline() != b"stopping\n":
            pass
        child.send_signal(signal.SIGTERM)

        assert child.wait(timeout=5) == 1


DEAF = """
import asyncio, sys
from engine.runtime.lifecycle import run

async def deaf():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

async def compose(life):
    life.spawn("deaf", deaf())
    life.ask_to_stop()

sys.exit(run(compose, grace=0.2))
"""


def test_a_process_ends_within_its_grace_whatever_is_still_under_way() -> None:
    with subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.DEVNULL) as child:
        assert child.wait(timeout=10) == 1


async def test_metrics_are_read_over_http() -> None:
    registry = new_registry()
    Counter("gouji_deals", "Deals.", registry=registry).inc(3)
    port = MetricsPort.open(registry, "127.0.0.1", 0)

    def read() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port.port}/metrics", timeout=5) as page:
            return str(page.read(), "utf-8")

    page = await asyncio.to_thread(read)
    await port.stop()

    assert "gouji_deals_total 3.0" in page
    assert "process_" in page
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(read)
