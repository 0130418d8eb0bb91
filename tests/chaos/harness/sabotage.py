"""The house with a safety taken out, so that a run can show that it would notice: a switch for each safety.

Law: for test runs alone. `GOUJI_SABOTAGE` names what is taken out and is read here and nowhere else. A sabotage replaces
the one thing in the house's own code that keeps the safety, and breaks when that thing is not there any more. Run as
`python -m tests.chaos.harness.sabotage`, it is the command line `gouji` in all else.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from engine.runtime import facts_nats, intake, streams
from engine.runtime.bus_nats import NatsBus
from engine.runtime.gate import Verdict
from engine.service import table
from engine.store import sql
from engine.store.port import Append, Appended
from engine.store.postgres import PostgresEventStore
from services.cli.main import main

PROGRAM = "tests.chaos.harness.sabotage"
"""The module to run."""
SWITCH = "GOUJI_SABOTAGE"
"""Names of sabotages, a space between two."""

HASTE_S = 0.5
"""How much later an action is stored than it is acknowledged."""
BRIEF_S = 0.1
"""How long a bus with a brief memory knows which messages it has had: the shortest that it takes."""


def without_epoch_check() -> None:
    """Let who led a table once append to it for ever."""
    checked = "and stream.owner_epoch <= asked.epoch"
    for name in ("APPEND", "APPEND_WITH_FACTS"):
        statement = getattr(sql, name)
        if checked not in statement:
            raise LookupError(checked)
        setattr(sql, name, statement.replace(checked, ""))


def without_expected_sequence() -> None:
    """Publish facts without saying which one they follow."""
    publish = NatsBus.publish_fact

    async def blindly(
        bus: NatsBus,
        subject: str,
        payload: bytes,
        *,
        event_id: str,
        expected_sequence: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        del expected_sequence
        return await publish(bus, subject, payload, event_id=event_id, headers=headers)

    _put(NatsBus, "publish_fact", blindly)


def with_brief_memory() -> None:
    """Have the bus forget which messages it has had, as one does that loses its nodes. No safety of the house's own."""
    _put(facts_nats, "STREAMS", tuple(replace(stream, duplicate_window=BRIEF_S) for stream in streams.STREAMS))


def without_command_ids() -> None:
    """Know no command again, neither the table nor who looks into the log."""

    async def unknown(store: PostgresEventStore, table_id: UUID, command_id: UUID) -> None:
        del store, table_id, command_id

    _put(table, "_ANSWERS", 0)
    _put(PostgresEventStore, "find_command", unknown)


def without_append_before_apply() -> None:
    """Acknowledge, apply and show first and store a little later, so that a crash in between loses what was told."""
    append = PostgresEventStore.append
    last: dict[UUID, asyncio.Task[Appended]] = {}

    async def later(store: PostgresEventStore, wanted: Append, previous: asyncio.Task[Appended] | None) -> Appended:
        await asyncio.sleep(HASTE_S)
        if previous is not None:
            await asyncio.wait({previous})
        return await append(store, wanted)

    async def hastily(store: PostgresEventStore, wanted: Append) -> Appended:
        last[wanted.table_id] = asyncio.create_task(later(store, wanted, last.get(wanted.table_id)))
        return Appended(wanted.expected_version + len(wanted.events), bytes(32))

    _put(PostgresEventStore, "append", hastily)


def without_consumer_gate() -> None:
    """Let every fact take effect whenever it comes, whatever came before it."""

    async def admit(
        connection: AsyncConnection[TupleRow], source: str, position: int, previous_hash: str = ""
    ) -> Verdict:
        del connection, source, position, previous_hash
        return Verdict.APPLY

    _put(intake, "admit", admit)


SABOTAGES: Mapping[str, Callable[[], None]] = {
    "epoch-check": without_epoch_check,
    "expected-sequence": without_expected_sequence,
    "brief-memory": with_brief_memory,
    "command-id": without_command_ids,
    "append-before-apply": without_append_before_apply,
    "consumer-gate": without_consumer_gate,
}


def _put(where: object, name: str, instead: object) -> None:
    """Replace what is there. Raises `AttributeError` when nothing is."""
    getattr(where, name)
    setattr(where, name, instead)


if __name__ == "__main__":
    for sabotage in os.environ[SWITCH].split():
        SABOTAGES[sabotage]()
    main()
