"""What has just been stored, sent to whoever watches.

Law: an update for each of the six seats and one for the public, always all seven and always one for each append,
whoever holds what (R11.3). The bytes of an audience are built once. Live messages may be lost: watchers see the gap by
the version and ask for the history, so trouble with the bus is counted and goes no further.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import structlog

from engine.match import SEATS
from engine.runtime import subjects
from engine.runtime.bus import Bus, BusUnavailable
from engine.service import wire
from engine.service.envelopes import wire as envelopes
from engine.service.measures import Measures
from engine.service.standing import Step
from engine.service.waits import shown_ms
from engine.store.port import Deadline

_log = structlog.get_logger(__name__)

AUDIENCES: tuple[int | None, ...] = (*SEATS, None)


class Showing:
    """The live messages of this replica."""

    def __init__(self, bus: Bus, measures: Measures) -> None:
        self._bus = bus
        self._measures = measures

    async def show(self, table_id: UUID, steps: Sequence[Step], deadline: Deadline | None) -> None:
        """Send every audience its update."""
        table = steps[-1].standing.match
        public = wire.public_part(table, shown_ms(table, deadline))
        for audience in AUDIENCES:
            subject = subjects.live(table_id, envelopes.audience_name(audience))
            await self._send(subject, envelopes.live(table_id, steps, audience, public))

    async def _send(self, subject: str, payload: bytes) -> None:
        try:
            await self._bus.publish(subject, payload)
        except BusUnavailable:
            self._measures.unshown.inc()
            _log.warning("update not shown", subject=subject)
