"""The fingerprint of a table's state after each of its events, told to operators while the table lives.

Law: told to nobody else, since who knows all hands but one could try them out against it. What a live engine said here must be
what a replay of the log says later.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from engine.runtime import subjects
from engine.runtime.bus import Bus, BusUnavailable
from engine.service import codec
from engine.service.measures import Measures
from engine.service.standing import Step
from engine.service.table import Show
from engine.store.port import Deadline


class Witness:
    """Shows as it is told to, and tells operators each step's fingerprint on the way."""

    def __init__(self, bus: Bus, measures: Measures, show: Show) -> None:
        self._bus = bus
        self._measures = measures
        self._show = show

    async def __call__(self, table_id: UUID, steps: Sequence[Step], deadline: Deadline | None) -> None:
        """Show the steps, then tell `<version> <hash>` of each; lost messages are lost."""
        await self._show(table_id, steps, deadline)
        try:
            for step in steps:
                said = f"{step.standing.version} {codec.state_hash(step.standing.match)}"
                await self._bus.publish(subjects.witness(table_id), said.encode())
        except BusUnavailable:
            self._measures.unshown.inc()
