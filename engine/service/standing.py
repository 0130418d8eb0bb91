"""A table as the log tells it: the match after an event, and the events as they are folded.

Law: reads the store and folds; decides nothing, appends nothing, sends nothing. A table is folded from its last deal's
start, which carries all that a table is, and from its beginning only where older versions are asked for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple
from uuid import UUID

from engine import match
from engine.match.events import DealStarted
from engine.service import codec, facts
from engine.store.port import Log, StoredEvent

_PAGE = 500
_DEAL_STARTED = codec.type_of(DealStarted)


class Standing(NamedTuple):
    """Where a table stands: its match after `version` events, `facts` of which other services hear of."""

    match: match.Match = match.EMPTY
    version: int = 0
    facts: int = 0


class Step(NamedTuple):
    """One event of a table, when it happened, and where the table stands after it."""

    event: match.Event
    at_ms: int
    standing: Standing


def advanced(standing: Standing, event: match.Event) -> Standing:
    """Where the table stands after this event."""
    after = match.evolve(standing.match, event)
    return Standing(after, standing.version + 1, facts.counted(standing.facts, event))


async def fold(store: Log, table_id: UUID) -> Standing:
    """Where the table stands now."""
    standing = await _start(store, table_id)
    async for step in _steps(store, table_id, standing):
        standing = step.standing
    return standing


async def steps_after(store: Log, table_id: UUID, version: int, limit: int) -> list[Step]:
    """The table's events after this version, at most `limit` of them."""
    start = await _start(store, table_id)
    found: list[Step] = []
    async for step in _steps(store, table_id, start if start.version <= version else Standing()):
        if step.standing.version > version:
            found.append(step)
        if len(found) == limit:
            break
    return found


async def every_event(store: Log, table_id: UUID) -> list[StoredEvent]:
    """The table's whole log. Raises `StreamNotFound`."""
    return [stored async for stored in _stored(store, table_id, 0)]


async def _start(store: Log, table_id: UUID) -> Standing:
    """Just before the newest deal's start, which does not look at what was before it."""
    newest = await store.last_of_type(table_id, _DEAL_STARTED)
    return Standing(version=max(newest - 1, 0))


async def _steps(store: Log, table_id: UUID, standing: Standing) -> AsyncIterator[Step]:
    async for stored in _stored(store, table_id, standing.version):
        event = codec.decode(stored.type, stored.schema, stored.payload)
        standing = advanced(standing, event)
        yield Step(event, stored.at_ms, standing)


async def _stored(store: Log, table_id: UUID, version: int) -> AsyncIterator[StoredEvent]:
    """Stored events after this version, page by page, so that others get their turn in between."""
    is_last = False
    while not is_last:
        page = await store.read(table_id, version, _PAGE)
        is_last = len(page) < _PAGE
        version += len(page)
        for stored in page:
            yield stored
