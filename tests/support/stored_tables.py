"""A played match in a store, as the engine would have left it there."""

from __future__ import annotations

from itertools import groupby

from engine.store.port import Append, EventStore, NewEvent
from tests.support.tables import TABLE_ID, LoggedTable


async def store_match(store: EventStore) -> LoggedTable:
    """Play a match of one deal and append its log, command by command; the last one closes the stream."""
    table = LoggedTable.seated()
    table.plays_itself_out()
    commands = [tuple(events) for _, events in groupby(table.log, key=lambda event: event.command_id)]
    for events in commands:
        first = events[0]
        await store.append(
            Append(
                table_id=TABLE_ID,
                expected_version=first.version - 1,
                epoch=1,
                command_id=first.command_id,
                actor=first.actor,
                at_ms=first.at_ms,
                events=tuple(NewEvent(event.type, event.schema, event.payload) for event in events),
                trace_id=first.trace_id,
                closes=events is commands[-1],
            )
        )
    return table
