"""Blows as they fall: done to the site, kept up for their time, undone.

Law: whatever a blow does it undoes, also when it is cut short; no two hit the same thing at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import psycopg
import structlog
from psycopg.rows import TupleRow

from tests.chaos.harness.havoc import Blow, Fault
from tests.chaos.harness.site import Site

LONGEST_DELAY_S = 0.2
SLOWEST_DATABASE_S = 0.6
CLOCK_MS = 8_000
LATE = 0.5
"""Black holes up to this size give back late what they took, the others never."""

_log = structlog.get_logger(__name__)

_HOLD = "lock table engine.stream in exclusive mode"


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
            await asyncio.sleep(blow.for_s)
        finally:
            await self._undo(blow)
            self._struck.discard(blow.target)

    async def _do(self, blow: Blow) -> None:
        match blow.fault:
            case Fault.KILL:
                await self._site.kill(blow.target)
            case Fault.RESTART:
                await self._site.end(blow.target)
            case Fault.STOP:
                self._site.pause(blow.target)
            case Fault.CLOCK:
                self._site.turn_clock(blow.target, round((blow.size - 0.5) * 2 * CLOCK_MS))
            case Fault.SLOWDB if blow.target == "postgres":
                await self._hold()
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

    async def _hold(self) -> None:
        """Let nobody append; a database that is down is slow enough."""
        with suppress(psycopg.OperationalError):
            self._holder = await psycopg.AsyncConnection.connect(self._site.dsn, connect_timeout=2)
            await self._holder.execute(_HOLD)

    async def _let_go(self) -> None:
        holder, self._holder = self._holder, None
        if holder is not None:
            await holder.close()
