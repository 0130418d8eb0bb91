"""The two loops of the service: make matches, and end what was abandoned or came to nothing.

Law: no state that matters; whatever a crash left is found by the next sweep of any replica. Queues are independent: one
that fails is counted and tried again, the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from engine.runtime.bell import Bell
from engine.runtime.faults import Unavailable
from services.matchmaking.matching import Queue
from services.matchmaking.measures import Measures
from services.matchmaking.policy import OPENING_SHARE
from services.matchmaking.rounds import Round, Rounds
from services.matchmaking.seating import Seating
from services.matchmaking.store import Tickets

_log = structlog.get_logger(__name__)

_ROUNDS_A_SWEEP = 100


class Matcher:
    """Plays rounds whenever a ticket came in, and every `sweep_s` seconds. `made` is called after each round."""

    def __init__(
        self, rounds: Rounds, measures: Measures, made: Callable[[Round], None], *, sweep_s: float = 0.5
    ) -> None:
        self._rounds = rounds
        self._measures = measures
        self._made = made
        self._bell = Bell(sweep_s)

    def wake(self) -> None:
        """A ticket came in."""
        self._bell.ring()

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            try:
                await self.sweep()
            except Unavailable:
                _log.warning("queues not swept")
            await self._bell.sleep()

    async def sweep(self) -> None:
        """Play every queue that is ready."""
        for queue in await self._rounds.ready():
            await self._guarded(queue)

    async def _guarded(self, queue: Queue) -> None:
        try:
            await self._play(queue)
        except Exception:  # noqa: BLE001 - one queue's fault, whatever it is, must not stop the others
            self._measures.troubles.inc()
            _log.exception("round failed", variant_key=queue.variant_key, deals=queue.deals)

    async def _play(self, queue: Queue) -> None:
        for _ in range(_ROUNDS_A_SWEEP):
            done = await self._rounds.play(queue)
            if done.is_idle:
                return
            self._report(done)
            self._made(done)

    def _report(self, done: Round) -> None:
        for match in done.matches:
            _log.info("match made", table_id=str(match.table_id), variant_key=match.queue.variant_key)
            self._measures.propose(match)
        for ticket in done.poisoned:
            _log.error("ticket set aside", ticket_id=str(ticket.ticket_id), variant_key=ticket.queue.variant_key)
        self._measures.ended.labels("cancelled").inc(len(done.withdrawn))
        self._measures.poisoned.inc(len(done.poisoned))


class Keeper:
    """Ends tickets without a sign of life, gives up matches whose tables did not open, forgets what is old.

    Only time in which signs of life could be received counts: after a start, or after the database was out of reach,
    nothing expires for `silent_s` seconds, and no match is given up before the facts of that time can have come in.
    `changed` is called when tickets are in another state.
    """

    def __init__(
        self,
        tickets: Tickets,
        seating: Seating,
        measures: Measures,
        changed: Callable[[], None],
        *,
        silent_s: float = 60.0,
        unopened_s: float = 30.0,
        kept_s: float = 86_400.0,
        sweep_s: float = 5.0,
    ) -> None:
        self._tickets = tickets
        self._seating = seating
        self._measures = measures
        self._changed = changed
        self._silent_s = silent_s
        self._unopened_s = unopened_s
        self._hearing_s = unopened_s * (1 - OPENING_SHARE)
        self._kept_s = kept_s
        self._bell = Bell(sweep_s)

    async def run(self) -> None:
        """Sweep for ever."""
        clock = asyncio.get_running_loop().time
        well_since = clock()
        while True:
            try:
                await self.sweep(clock() - well_since)
            except Unavailable:
                _log.warning("tickets not swept")
                well_since = clock()
            await self._bell.sleep()

    async def sweep(self, well_s: float) -> None:
        """Go over everything once; all has been well for so many seconds."""
        if well_s >= self._hearing_s:
            await self._give_up()
        if well_s >= self._silent_s:
            await self._expire()
        await self._tickets.forget(self._kept_s)
        await self._seating.forget()

    async def _give_up(self) -> None:
        for table_id in await self._seating.give_up_unopened(self._unopened_s):
            self._measures.unopened.inc()
            _log.error("match not opened", table_id=str(table_id))
            self._changed()

    async def _expire(self) -> None:
        if expired := await self._tickets.expire(self._silent_s):
            self._measures.ended.labels("expired").inc(expired)
            self._changed()
