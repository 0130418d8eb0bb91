"""The life of a process: started in order, stopped in reverse order, never half alive.

Law: `compose` (in `main.py`) constructs and starts things one by one and says here how each is stopped. The process
stops on SIGTERM, SIGINT or the death of any spawned task, within a grace; a second signal ends it at once. A part that
takes too long, because what it waits for is out of reach, is left, so that the others get their turn; then the process
ends without waiting for anything that is still under way. Exit code 0 is a clean stop that was asked for, 1 anything else.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

import structlog

from engine.runtime.ending import end

_log = structlog.get_logger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_SHARE = 0.75
"""Of the grace that is left, what one part may take to stop."""

_YOUNG = 10_000
"""So many objects more than before, and the collector looks at the young ones; Python's own 700 are what a few actions make."""

Stop = Callable[[], Awaitable[None]]


class Lifecycle:
    """What runs in this process. `grace`: seconds that stopping everything may take."""

    def __init__(self, grace: float = 20.0) -> None:
        self.left: list[str] = []
        """Parts that were left because they did not stop in time."""
        self.may_take_s = grace * _SHARE
        """Seconds that the part which is being stopped may take."""
        self._grace = grace
        self._stops: list[tuple[str, Stop]] = []
        self._stop_asked = asyncio.Event()
        self._failed = False

    def on_stop(self, name: str, stop: Stop) -> None:
        """Stop this before everything that was named earlier."""
        self._stops.append((name, stop))

    def spawn(self, name: str, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Run this in the background until the stop; if it raises, the process stops."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._watch)

        async def cancel() -> None:
            await end(task)

        self.on_stop(name, cancel)
        return task

    def ask_to_stop(self) -> None:
        """Begin the stop."""
        self._stop_asked.set()

    async def run(self, compose: Callable[[Lifecycle], Awaitable[None]]) -> int:
        """Start everything, serve until asked to stop, stop everything; returns the exit code."""
        self._listen_to_signals()
        try:
            await self._start(compose)
            await self._stop_asked.wait()
        finally:
            await self._stop_all()
        return int(self._failed)

    async def _start(self, compose: Callable[[Lifecycle], Awaitable[None]]) -> None:
        """Start, unless a signal comes first: then give the start up."""
        starting = asyncio.create_task(_called(compose, self))
        asked = asyncio.create_task(self._stop_asked.wait())
        try:
            await asyncio.wait({starting, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            await end(starting)
        try:
            await starting
            spare_the_collector()
            _log.info("started", pid=os.getpid())
        except asyncio.CancelledError:
            _log.info("start_given_up")
        except Exception:  # noqa: BLE001 - whatever failed, what had started must be stopped
            self._failed = True
            self.ask_to_stop()
            _log.critical("start_failed", exc_info=True)

    async def _stop_all(self) -> None:
        _log.info("stopping")
        clock = asyncio.get_running_loop().time
        ends_at = clock() + self._grace
        while self._stops:
            self.may_take_s = (ends_at - clock()) * _SHARE
            await self._stop_last(self.may_take_s)
        _log.info("stopped", failed=self._failed)

    async def _stop_last(self, seconds: float) -> None:
        name, stop = self._stops.pop()
        stopping = asyncio.ensure_future(stop())
        done, _ = await asyncio.wait({stopping}, timeout=seconds)
        if not done:
            stopping.cancel()
            self._failed = True
            self.left.append(name)
            _log.error("part_left", part=name, seconds=round(seconds, 1))
            return
        try:
            await stopping
        except Exception:  # noqa: BLE001 - one part that cannot stop must not keep the others from it
            self._failed = True
            _log.exception("stop_failed", part=name)

    def _watch(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed = True
            _log.critical("task_died", task=task.get_name(), exc_info=error)
            self.ask_to_stop()

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            with suppress(NotImplementedError):  # no such thing on Windows, where Ctrl-C cancels the main task
                loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: signal.Signals) -> None:
        _log.info("signal", number=int(number))
        if self._stop_asked.is_set():
            os._exit(1)
        self.ask_to_stop()


def spare_the_collector() -> None:
    """Have garbage looked for where it is, and seldom, as every look holds everybody up.

    What is there after the start stays. Of what comes later nearly all goes by itself.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])


async def _called(compose: Callable[[Lifecycle], Awaitable[None]], life: Lifecycle) -> None:
    await compose(life)


def run(compose: Callable[[Lifecycle], Awaitable[None]], *, grace: float = 20.0) -> int:
    """Live a whole life on the fastest event loop there is; returns the exit code."""

    async def live() -> int:
        life = Lifecycle(grace)
        code = await life.run(compose)
        if life.left:
            # What such a part waits for may keep the loop from closing for ever.
            os._exit(code)
        return code

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(live())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return None
    return uvloop.new_event_loop
