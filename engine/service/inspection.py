"""A table looked at from outside: what its log says, and how far this release can fold it.

Law: reads the log; claims, appends and shows nothing, and never a card. What breaks over an event is what is looked for.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from engine.service import codec
from engine.service.faults import fault_of
from engine.service.standing import Standing, advanced, every_event
from engine.store.chain import first_break
from engine.store.port import EventStore, StoredEvent


class Line(NamedTuple):
    """An event without what is in it."""

    version: int
    type: str
    actor: str
    at_ms: int
    command_id: str


class Inspection(NamedTuple):
    """Where a table stands in its log.

    `folded`: the version that this release folds to; `fault`: what breaks over the next event, empty when none does;
    `broken_at`: the version at which the hash chain breaks, 0 when it holds.
    """

    table_id: str
    version: int
    closed: bool
    epoch: int
    deadline_at_ms: int | None
    folded: int
    fault: str
    broken_at: int
    phase: str
    last: tuple[Line, ...]


async def inspect(store: EventStore, table_id: UUID, last: int = 10) -> Inspection:
    """Look at a table and its last events. Raises `StreamNotFound`, `StoreUnavailable`."""
    head = await store.head(table_id)
    log = await every_event(store, table_id)
    standing, fault = _folded(log)
    return Inspection(
        table_id=str(table_id),
        version=head.version,
        closed=head.closed,
        epoch=head.epoch,
        deadline_at_ms=head.deadline.at_ms if head.deadline else None,
        folded=standing.version,
        fault=fault,
        broken_at=first_break(log) or 0,
        phase=str(standing.match.phase),
        last=tuple(
            Line(event.version, event.type, event.actor, event.at_ms, str(event.command_id))
            for event in log[max(len(log) - last, 0) :]
        ),
    )


def _folded(log: list[StoredEvent]) -> tuple[Standing, str]:
    standing = Standing()
    for stored in log:
        try:
            standing = advanced(standing, codec.decode(stored.type, stored.schema, stored.payload))
        except Exception as error:  # noqa: BLE001 - whatever breaks here is the finding
            return standing, fault_of(error)
    return standing, ""
