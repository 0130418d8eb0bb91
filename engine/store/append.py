"""Group commit: the appends of many tables that wait at the same moment share a statement, a round trip and a commit.

Law: a lane is one connection and one task that stores batches of the line, one at a time; a batch is bounded in rows and
in time. Whoever waits may go away; his append is stored all the same. After a lost connection the same statement is sent again: what
the first one had stored is found by its command, what it had not is stored now, and a late first one meets a version
that has moved on. Only when that cannot be brought to an end in time is the outcome given back as unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

import psycopg
import structlog
from psycopg import errors
from psycopg.rows import TupleRow

from engine.store import sql
from engine.store.admission import refusal
from engine.store.heads import Heads
from engine.store.line import Batch, Line, Turnstile, Waiting
from engine.store.port import (
    GENESIS,
    Append,
    Appended,
    StoreUnavailable,
    StreamHead,
    WrongVersion,
)
from engine.store.prepared import integers, prepare
from engine.store.rows import Chained, chained_to, columns, fact_columns, head_of, keys
from engine.store.sessions import PAUSE_S, Connection, ConnectionLost, connect, fetch

_log = structlog.get_logger(__name__)

_APPEND = "append"
_APPEND_WITH_FACTS = "append_with_facts"
"""The names of the lanes' prepared statements."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Bounds of the writer: `lanes` connections, `batch` appends a statement, `queue` appends waiting in all.

    With two lanes one makes its statement or answers while the other's is at the server, so that neither side waits.
    `statement_s` bounds one statement, `patience_s` all tries of a batch, `heads` the streams whose heads are remembered.
    """

    lanes: int = 2
    batch: int = 500
    queue: int = 10_000
    statement_s: float = 5.0
    patience_s: float = 10.0
    heads: int = 50_000


class Lane:
    """One connection, which stores one batch of the line after the other."""

    def __init__(self, dsn: str, terms: Terms, line: Line, turnstile: Turnstile, heads: Heads) -> None:
        self._dsn = dsn
        self._terms = terms
        self._line = line
        self._turnstile = turnstile
        self._heads = heads
        self._connection: Connection | None = None

    async def run(self) -> None:
        """Go on until the line is closed and empty."""
        try:
            while batch := await self._line.next_batch():
                await self._store(batch)
                # Whoever was answered and goes on at once shall be in the next batch.
                await asyncio.sleep(0)
        finally:
            await self._disconnect()

    async def _store(self, batch: Batch) -> None:
        """Bring a batch to an end, whatever happens to the connection."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            while (failure := await self._try(batch)) is not None:
                await self._disconnect()
                if clock() >= began + self._terms.patience_s:
                    _log.error(
                        "appends given up", appends=len(batch.entries), sent=batch.sent, cause=type(failure).__name__
                    )
                    batch.fail(failure)
                    self._line.give_up(began, failure)
                    return
                await asyncio.sleep(PAUSE_S)
            self._line.came_through()
        finally:
            batch.fail(StoreUnavailable("the lane ended"))
            self._line.release(batch)

    async def _try(self, batch: Batch) -> Exception | None:
        """Store a batch; the failure when there is no connection to store it on."""
        try:
            connection = await self._connected()
            await self._append(connection, batch, batch.unanswered())
        except (StoreUnavailable, ConnectionLost, psycopg.Error) as failure:
            return failure
        return None

    async def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = await connect(self._dsn, self._terms.statement_s)
            await prepare(self._connection, _APPEND, sql.APPEND, self._terms.statement_s)
            await prepare(self._connection, _APPEND_WITH_FACTS, sql.APPEND_WITH_FACTS, self._terms.statement_s)
        return self._connection

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _append(self, connection: Connection, batch: Batch, entries: Sequence[Waiting]) -> None:
        """Run these of a batch; when the server will not have them as a whole, without the one that it minds."""
        try:
            await self._append_together(connection, batch, entries)
        except psycopg.Error as failure:
            await self._append_apart(connection, batch, entries, failure)

    async def _append_together(self, connection: Connection, batch: Batch, entries: Sequence[Waiting]) -> None:
        rows = await self._chained(connection, [entry.append for entry in entries])
        facts = fact_columns(rows)
        name = _APPEND_WITH_FACTS if facts else _APPEND
        refused = await self._send(connection, batch, name, columns(rows) + facts)
        for place, (entry, row) in enumerate(zip(entries, rows, strict=True), 1):
            if place not in refused:
                self._heads.put(row.append.table_id, row.answer)
                entry.accept(row.answer)
        if refused:
            await self._explain(connection, [entries[place - 1] for place in sorted(refused)])

    async def _send(self, connection: Connection, batch: Batch, name: str, parameters: Sequence[bytes]) -> set[int]:
        """Run the statement in its turn; returns the places of what was refused."""
        in_turn = await self._turnstile.enter()
        try:
            batch.sent = True
            return await integers(connection, name, parameters, self._terms.statement_s)
        finally:
            if in_turn:
                await self._turnstile.leave()

    async def _append_apart(
        self, connection: Connection, batch: Batch, entries: Sequence[Waiting], failure: psycopg.Error
    ) -> None:
        """Mostly it minds a command that is stored already; else each append goes alone, to fail for itself."""
        left = [entry for entry, _ in await self._not_stored(connection, entries)]
        if len(entries) == 1 and left:
            self._refuse_alone(left[0], failure)
            return
        _log.warning("batch taken apart", appends=len(entries), known=len(entries) - len(left), state=failure.sqlstate)
        for some in [left] if left and len(left) < len(entries) else [[entry] for entry in left]:
            await self._append(connection, batch, some)

    async def _chained(self, connection: Connection, appends: Sequence[Append]) -> list[Chained]:
        """Chain each append's events to the head of its stream, asking for the heads that are not known."""
        previous = [self._heads.before(append) for append in appends]
        unknown = [append.table_id for append, head in zip(appends, previous, strict=True) if head is None]
        found: dict[UUID, bytes] = dict(await self._fetch(connection, sql.HEADS, keys(unknown))) if unknown else {}
        # A stream that is not where its append expects it refuses it, whatever that is chained to.
        return [
            chained_to(append, head or found.get(append.table_id, GENESIS))
            for append, head in zip(appends, previous, strict=True)
        ]

    async def _explain(self, connection: Connection, entries: Sequence[Waiting]) -> None:
        """Answer those whose tables did not take them: the first answer when the command is stored, else why not."""
        for entry, head in await self._not_stored(connection, entries):
            self._heads.forget(entry.append.table_id)
            entry.refuse(refusal(entry.append, head) or WrongVersion("the stream was moving"))

    async def _not_stored(
        self, connection: Connection, entries: Sequence[Waiting]
    ) -> list[tuple[Waiting, StreamHead | None]]:
        """Give those whose command is stored already their first answer; return the others, and their streams' heads."""
        tables = [entry.append.table_id for entry in entries]
        commands = [entry.append.command_id for entry in entries]
        left: list[tuple[Waiting, StreamHead | None]] = []
        rows = await self._fetch(connection, sql.REFUSED, (*keys(tables), commands))
        for entry, (*standing, version, digest) in zip(entries, rows, strict=True):
            if version is None:
                left.append((entry, None if standing[0] is None else head_of(standing)))
            else:
                self._heads.forget(entry.append.table_id)
                entry.accept(Appended(version, digest))
        return left

    def _refuse_alone(self, entry: Waiting, failure: psycopg.Error) -> None:
        # Never the whole text: its details may quote the row, cards and all.
        reason = failure.diag.message_primary or type(failure).__name__
        _log.error("append refused by the database", table_id=str(entry.append.table_id), error=reason)
        self._heads.forget(entry.append.table_id)
        if isinstance(failure, errors.UniqueViolation) and failure.diag.constraint_name == "outbox_pkey":
            entry.refuse(ValueError("a fact of this position is waiting already"))
        else:
            entry.refuse(StoreUnavailable(f"refused by the database: {failure.sqlstate}"))

    async def _fetch(
        self, connection: Connection, statement: LiteralString, parameters: Sequence[object]
    ) -> list[TupleRow]:
        return await fetch(connection, statement, parameters, self._terms.statement_s)


class GroupCommit:
    """The lanes, and the line before them."""

    def __init__(self, dsn: str, terms: Terms) -> None:
        self.heads = Heads(terms.heads)
        self._line = Line(terms.lanes, terms.batch, terms.queue)
        turnstile = Turnstile()
        lanes = [Lane(dsn, terms, self._line, turnstile, self.heads) for _ in range(terms.lanes)]
        self._running = {asyncio.create_task(lane.run(), name="append lane") for lane in lanes}
        for lane in self._running:
            lane.add_done_callback(self._ended)

    def submit(self, append: Append) -> asyncio.Future[Appended]:
        """Queue an append with whatever else waits; its answer comes. A cancelled answer does not cancel it.

        Raises `StoreUnavailable` when too many are waiting.
        """
        return self._line.submit(append)

    async def close(self) -> None:
        """Store what is waiting, then let go of the connections."""
        self._line.close()
        if self._running:
            await asyncio.wait(self._running)

    def _ended(self, lane: asyncio.Task[None]) -> None:
        """Nobody may wait when there is no lane any more."""
        self._running.discard(lane)
        if not lane.cancelled() and (failure := lane.exception()):
            _log.critical("append lane died", exc_info=failure)
        if not self._running:
            self._line.close()
            self._line.fail(StoreUnavailable("the store is closed"))
