"""Blows as they fall: done to the site, kept up for their time, undone.

Law: whatever a blow does it undoes, also when it is cut short; no two hit the same thing at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import LiteralString

import psycopg
import structlog
from psycopg.rows import TupleRow

from tests.chaos.harness.havoc import Blow, Fault, mark_of
from tests.chaos.harness.site import Site
from tests.support.engine_bench import eventually

LONGEST_DELAY_S = 0.2
SLOWEST_DATABASE_S = 0.6
CLOCK_MS = 8_000
AFTER_S = 2.0
LATE = 0.5
"""Black holes up to this size give back late what they took, the others never."""

_log = structlog.get_logger(__name__)

_HOLDS = (
    "lock table engine.stream in exclusive mode",
    # Tables still change hands, so that what waits here comes late.
    "lock table engine.event in exclusive mode",
)


class Havoc:
    """Everything that goes wrong at a site."""

    def __init__(self, site: Site) -> None:
        self.fallen: Counter[str] = Counter()
        self.hit: Counter[str] = Counter()
        self._site = site
        self._struck: set[str] = set()
        self._holder: psycopg.AsyncConnection[TupleRow] | None = None

    async def wreak(self, blows: Sequence[Blow]) -> None:
        """Let all blows fall at their times; returns when the last one is undone."""
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as falling:
            for blow in blows:
                await asyncio.sleep(max(0.0, began + blow.at_s - asyncio.get_running_loop().time()))
                if blow.target not in self._struck:
                    falling.create_task(self._fall(blow))

    async def _fall(self, blow: Blow) -> None:
        self._struck.add(blow.target)
        self.fallen[blow.fault] += 1
        self.hit[blow.target] += 1
        _log.info(
            "blow fell", fault=blow.fault, target=blow.target, for_s=round(blow.for_s, 1), size=round(blow.size, 2)
        )
        try:
            await self._do(blow)
            await self._last(blow)
        finally:
            await self._undo(blow)
            self._struck.discard(blow.target)

    async def _last(self, blow: Blow) -> None:
        """Wait for the end of a blow's time; one that has nothing more to do gives time to what follows from it."""

        async def is_lost() -> bool:
            return self._site.proxies[blow.target].has_cut

        if blow.fault is Fault.LOSE:
            with suppress(TimeoutError):
                await eventually(is_lost, blow.for_s)
            await asyncio.sleep(AFTER_S)
        else:
            await asyncio.sleep(blow.for_s)

    async def _do(self, blow: Blow) -> None:
        match blow.fault:
            case Fault.KILL:
                await self._site.kill(blow.target)
            case Fault.RESTART:
                await self._site.end(blow.target)
            case Fault.STOP:
                self._site.pause(blow.target)
            case Fault.LOSE:
                self._site.proxies[blow.target].cut_at(mark_of(blow.target) or b"", is_delivered=True)
            case Fault.CLOCK:
                self._site.turn_clock(blow.target, round((blow.size - 0.5) * 2 * CLOCK_MS))
            case Fault.SLOWDB if blow.target == "postgres":
                await self._hold(_HOLDS[int(blow.size * len(_HOLDS))])
            case Fault.FULLDISK:
                self._site.fill(blow.target)
            case _:
                self._hurt(blow)

    async def _undo(self, blow: Blow) -> None:
        match blow.fault:
            case Fault.KILL | Fault.RESTART:
                await self._site.revive(blow.target)
            case Fault.STOP:
                self._site.resume(blow.target)
            case Fault.CLOCK:
                self._site.turn_clock(blow.target, 0)
            case Fault.SLOWDB if blow.target == "postgres":
                await self._let_go()
            case Fault.FULLDISK:
                await self._site.clear(blow.target)
            case Fault.LATENCY | Fault.SLOWDB:
                self._site.proxies[blow.target].delay(0)
            case Fault.BLACKHOLE if blow.size < LATE:
                self._site.proxies[blow.target].release()
            case _:
                self._site.proxies[blow.target].heal()

    def _hurt(self, blow: Blow) -> None:
        proxy = self._site.proxies[blow.target]
        kinds: dict[Fault, Callable[[], None]] = {
            Fault.RESET: (proxy.cut, proxy.refuse, proxy.lose_answers)[int(blow.size * 3)],
            Fault.BLACKHOLE: proxy.swallow,
            Fault.LATENCY: partial(proxy.delay, blow.size * LONGEST_DELAY_S),
            Fault.SLOWDB: partial(proxy.delay, blow.size * SLOWEST_DATABASE_S),
        }
        kinds[blow.fault]()

    async def _hold(self, statement: LiteralString) -> None:
        """Let nobody append; a database that is down is slow enough."""
        with suppress(psycopg.OperationalError):
            self._holder = await psycopg.AsyncConnection.connect(self._site.dsn, connect_timeout=2)
            await self._holder.execute(statement)

    async def _let_go(self) -> None:
        holder, self._holder = self._holder, None
        if holder is not None:
            await holder.close()
