"""A table as its log alone tells it: the fingerprint of its state after each event.

Law: reads and folds; what it needs of a running engine is nothing.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from engine.service import codec
from engine.service.standing import steps_after
from engine.store.port import Log

LONGEST = 1_000_000
"""More events than any match has."""


class Fingerprint(NamedTuple):
    """An event of a table and its state after it."""

    version: int
    event: str
    state_hash: str


async def fingerprints(store: Log, table_id: UUID) -> list[Fingerprint]:
    """Every version of a table, from its first event on. Raises `StreamNotFound`, `StoreUnavailable`."""
    steps = await steps_after(store, table_id, 0, LONGEST)
    return [
        Fingerprint(step.standing.version, codec.name_of(step.event), codec.state_hash(step.standing.match))
        for step in steps
    ]
