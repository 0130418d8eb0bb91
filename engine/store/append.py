"""Group commit: the appends of many tables that wait at the same moment share a statement, a round trip and a commit.

Law: a lane is one connection and one task that stores what waits, a batch at a time; nothing else waits for the next
one, and a batch is bounded in rows and in time. A table is once in a batch, and always in the same lane. Whoever
waits may go away; his append is stored all the same. After a lost connection the same statement is sent again: what
the first one had stored is found by its command, what it had not is stored now, and a late first one meets a version
that has moved on. Only when that cannot be brought to an end in time is the outcome given back as unknown.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

import psycopg
import structlog
from psycopg import errors
from psycopg.rows import TupleRow

from engine.store import arrays, sql
from engine.store.admission import refusal
from engine.store.arrays import uuids
from engine.store.heads import Heads
from engine.store.port import (
    GENESIS,
    Append,
    Appended,
    OutcomeUnknown,
    StoreUnavailable,
    StreamHead,
    WrongVersion,
    shard_of,
)
from engine.store.rows import Chained, chained_to, columns, head_of, keys
from engine.store.sessions import PAUSE_S, Connection, ConnectionLost, connect, fetch

_log = structlog.get_logger(__name__)


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


@dataclass(eq=False, slots=True)
class _Waiting:
    """An append and who waits for its answer."""

    append: Append
    answer: asyncio.Future[Appended]

    def accept(self, answer: Appended) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def refuse(self, reason: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(reason)


@dataclass(eq=False, slots=True)
class _Batch:
    """Appends of different tables, by table id. `sent`: the server may have got them."""

    entries: list[_Waiting]
    sent: bool = False

    def unanswered(self) -> list[_Waiting]:
        """Those without an answer, and those who went away, because nobody knows whether theirs is stored."""
        return [entry for entry in self.entries if not entry.answer.done() or entry.answer.cancelled()]

    def fail(self, cause: Exception) -> None:
        """Give up on those that have no answer yet."""
        for entry in self.unanswered():
            reason = OutcomeUnknown("no answer from the database") if self.sent else StoreUnavailable("not connected")
            reason.__cause__ = cause
            entry.refuse(reason)


class Lane:
    """One connection's queue and the task that empties it."""

    def __init__(self, dsn: str, terms: Terms, heads: Heads) -> None:
        self._dsn = dsn
        self._terms = terms
        self._heads = heads
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._connection: Connection | None = None
        self._work = asyncio.create_task(self._run(), name="append lane")
        self._work.add_done_callback(self._ended)

    def submit(self, append: Append) -> asyncio.Future[Appended]:
        """Queue an append. Raises `StoreUnavailable` when the queue is full or the lane is closing."""
        if self._closing or self._work.done():
            raise StoreUnavailable("the store is closed")
        if len(self._waiting) >= self._terms.queue // self._terms.lanes:
            raise StoreUnavailable("too many appends are waiting")
        entry = _Waiting(append, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        self._wake.set()
        return entry.answer

    async def close(self) -> None:
        """Store what is waiting, then let go of the connection."""
        self._closing = True
        self._wake.set()
        await asyncio.wait({self._work})

    async def _run(self) -> None:
        try:
            while batch := await self._next_batch():
                await self._store(batch)
        finally:
            await self._disconnect()

    def _ended(self, work: asyncio.Task[None]) -> None:
        """Nobody may wait for a lane that is no more."""
        self._fail_waiting(StoreUnavailable("the store is closed"))
        if not work.cancelled() and (failure := work.exception()):
            _log.critical("append lane died", exc_info=failure)

    async def _next_batch(self) -> _Batch | None:
        while not self._waiting:
            if self._closing:
                return None
            self._wake.clear()
            await self._wake.wait()
        return _Batch(self._take())

    def _take(self) -> list[_Waiting]:
        """Take the oldest appends, one of a table; a table's second one stays, and so do those behind it."""
        taken: dict[int, _Waiting] = {}
        left: list[_Waiting] = []
        while self._waiting and len(taken) < self._terms.batch:
            entry = self._waiting.popleft()
            # By integer, because a UUID hashes and compares in Python.
            if taken.setdefault(entry.append.table_id.int, entry) is not entry:
                left.append(entry)
        self._waiting.extendleft(reversed(left))
        return [entry for _, entry in sorted(taken.items())]

    async def _store(self, batch: _Batch) -> None:
        """Bring a batch to an end, whatever happens to the connection."""
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + self._terms.patience_s
        try:
            while (failure := await self._try(batch)) is not None:
                await self._disconnect()
                if clock() >= give_up_at:
                    _log.error("appends given up", appends=len(batch.entries), sent=batch.sent)
                    batch.fail(failure)
                    self._fail_waiting(failure)
                    return
                await asyncio.sleep(PAUSE_S)
        finally:
            batch.fail(StoreUnavailable("the lane ended"))

    async def _try(self, batch: _Batch) -> Exception | None:
        """Store a batch; the failure when there is no connection to store it on."""
        try:
            connection = await self._connected()
            await self._append(connection, batch, batch.unanswered())
        except (StoreUnavailable, ConnectionLost) as failure:
            return failure
        return None

    def _fail_waiting(self, cause: Exception) -> None:
        """Those behind a batch that was given up have waited as long; nothing was sent for them."""
        _Batch(list(self._waiting)).fail(cause)
        self._waiting.clear()

    async def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = await connect(self._dsn, self._terms.statement_s)
            arrays.register(self._connection)
        return self._connection

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _append(self, connection: Connection, batch: _Batch, entries: Sequence[_Waiting]) -> None:
        """Run these of a batch; when the server will not have them as a whole, without the one that it minds."""
        try:
            await self._append_together(connection, batch, entries)
        except psycopg.Error as failure:
            await self._append_apart(connection, batch, entries, failure)

    async def _append_together(self, connection: Connection, batch: _Batch, entries: Sequence[_Waiting]) -> None:
        rows = await self._chained(connection, [entry.append for entry in entries])
        batch.sent = True
        refused = {place for (place,) in await self._fetch(connection, sql.APPEND, columns(rows))}
        for place, (entry, row) in enumerate(zip(entries, rows, strict=True), 1):
            if place not in refused:
                self._heads.put(row.append.table_id, row.answer)
                entry.accept(row.answer)
        if refused:
            await self._explain(connection, [entries[place - 1] for place in sorted(refused)])

    async def _append_apart(
        self, connection: Connection, batch: _Batch, entries: Sequence[_Waiting], failure: psycopg.Error
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

    async def _explain(self, connection: Connection, entries: Sequence[_Waiting]) -> None:
        """Answer those whose tables did not take them: the first answer when the command is stored, else why not."""
        for entry, head in await self._not_stored(connection, entries):
            self._heads.forget(entry.append.table_id)
            entry.refuse(refusal(entry.append, head) or WrongVersion("the stream was moving"))

    async def _not_stored(
        self, connection: Connection, entries: Sequence[_Waiting]
    ) -> list[tuple[_Waiting, StreamHead | None]]:
        """Give those whose command is stored already their first answer; return the others, and their streams' heads."""
        tables = [entry.append.table_id for entry in entries]
        commands = uuids([entry.append.command_id for entry in entries])
        left: list[tuple[_Waiting, StreamHead | None]] = []
        rows = await self._fetch(connection, sql.REFUSED, (*keys(tables), commands))
        for entry, (*standing, version, digest) in zip(entries, rows, strict=True):
            if version is None:
                left.append((entry, None if standing[0] is None else head_of(standing)))
            else:
                self._heads.forget(entry.append.table_id)
                entry.accept(Appended(version, digest))
        return left

    def _refuse_alone(self, entry: _Waiting, failure: psycopg.Error) -> None:
        _log.error("append refused by the database", table_id=str(entry.append.table_id), error=str(failure))
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
    """The lanes; a table's appends always take the same one."""

    def __init__(self, dsn: str, terms: Terms) -> None:
        self.heads = Heads(terms.heads)
        self._lanes = tuple(Lane(dsn, terms, self.heads) for _ in range(terms.lanes))

    def submit(self, append: Append) -> asyncio.Future[Appended]:
        """Queue an append with whatever else waits; its answer comes. A cancelled answer does not cancel it.

        Raises `StoreUnavailable` when too many are waiting.
        """
        return self._lanes[shard_of(append.table_id) % len(self._lanes)].submit(append)

    async def close(self) -> None:
        """Store what is waiting, then let go of the connections."""
        await asyncio.gather(*(lane.close() for lane in self._lanes))
