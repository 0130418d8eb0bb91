"""Connections to Postgres: how one is opened, bounded in time and cut; a pool of them for single statements.

Law: no statement is ever cancelled half way. One that takes too long has its connection cut instead, which ends it at
once even when the network swallows everything, and the connection is thrown away. Every statement that goes through
`Sessions` may be repeated harmlessly, so a lost connection is answered by asking again.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, LiteralString, Self, TypeVar

import psycopg
import structlog
from psycopg import AsyncConnection, conninfo, errors
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from engine.store.port import StoreUnavailable

_log = structlog.get_logger(__name__)

CONNECT_S = 3
"""Longest time to open a connection."""
PAUSE_S = 0.05
"""Between two tries."""

_LOOKUPS_ONLY = "-c jit=off -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off"
"""Every statement is a few index lookups; this keeps it so while a new partition has no statistics yet."""

Parameters = Sequence[object] | Mapping[str, object]
Connection = AsyncConnection[TupleRow]
Answer = TypeVar("Answer")


class ConnectionLost(Exception):
    """The connection ended before the answer came: the statement may have taken effect or not."""


def settings(dsn: str, statement_s: float) -> dict[str, Any]:
    """Complete a DSN with what the store needs of every connection.

    The server gives a statement up some time after this side has cut its connection, so that none is left behind there.
    """
    given = conninfo.conninfo_to_dict(dsn)
    ours: dict[str, Any] = {
        "application_name": "gouji-engine-store",
        "connect_timeout": CONNECT_S,
        "target_session_attrs": "read-write",
        "tcp_user_timeout": CONNECT_S * 1000,
    }
    options = f"{given.get('options') or ''} {_LOOKUPS_ONLY} -c statement_timeout={int(statement_s * 2000)}"
    return ours | given | {"options": options.strip()}


async def connect(dsn: str, statement_s: float) -> Connection:
    """Open a connection. Raises `StoreUnavailable`."""
    try:
        return await AsyncConnection.connect(**settings(dsn, statement_s), autocommit=True, prepare_threshold=0)
    except psycopg.OperationalError as failure:
        raise StoreUnavailable("cannot connect") from failure


async def fetch(
    connection: Connection, statement: LiteralString, parameters: Parameters, seconds: float
) -> list[TupleRow]:
    """Run one statement and return its rows. Raises what `bounded` does."""

    async def rows() -> list[TupleRow]:
        cursor = await connection.execute(statement, parameters, binary=True)
        return await cursor.fetchall() if cursor.description else []

    return await bounded(connection, rows(), seconds)


async def bounded(connection: Connection, work: Awaitable[Answer], seconds: float) -> Answer:
    """Wait for what runs one statement, and cut its connection when that takes too long.

    Raises `ConnectionLost` when its outcome is unknown, `psycopg.Error` when the server said no and nothing happened.
    The caller must not be cancelled: it belongs to the store.
    """
    cut = asyncio.get_running_loop().call_later(seconds, _cut, connection, seconds)
    try:
        return await work
    except errors.ReadOnlySqlTransaction as demoted:
        # The server has become a standby; the primary is elsewhere, and only a new connection finds it.
        await connection.close()
        raise ConnectionLost from demoted
    except psycopg.Error as failure:
        if connection.closed:
            raise ConnectionLost from failure
        raise
    finally:
        cut.cancel()


def _cut(connection: Connection, seconds: float) -> None:
    """Shut the socket down under a statement, so that it fails now; closing it would free its number too early."""
    _log.warning("statement cut", seconds=seconds)
    wire = socket.socket(fileno=connection.pgconn.socket)
    try:
        wire.shutdown(socket.SHUT_RDWR)
    finally:
        wire.detach()


class Sessions:
    """A bounded pool of connections. `statement_s` bounds one statement, `patience_s` all tries of a call."""

    def __init__(self, dsn: str, size: int, statement_s: float, patience_s: float) -> None:
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            kwargs=settings(dsn, statement_s) | {"autocommit": True},
            min_size=1,
            max_size=size,
            max_waiting=size * 256,
            timeout=patience_s,
            reconnect_timeout=patience_s,
            open=False,
        )
        self._statement_s = statement_s
        self._patience_s = patience_s
        self._running: set[asyncio.Task[list[TupleRow]]] = set()

    async def open(self) -> Self:
        """Connect. Raises `StoreUnavailable`."""
        try:
            await self._pool.open(wait=True, timeout=self._patience_s)
        except PoolTimeout as failure:
            await self._pool.close()
            raise StoreUnavailable("cannot connect") from failure
        return self

    async def rows(
        self, statement: LiteralString, parameters: Parameters = (), *, patience_s: float | None = None
    ) -> list[TupleRow]:
        """Run one harmlessly repeatable statement. A cancelled caller does not cancel it.

        Raises `StoreUnavailable` when there is no answer within `patience_s` (the pool's own when None).
        """
        task = asyncio.create_task(self._patiently(statement, parameters, patience_s or self._patience_s))
        self._running.add(task)
        task.add_done_callback(self._settled)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Finish what is under way and let go of every connection."""
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._pool.close()

    def _settled(self, task: asyncio.Task[list[TupleRow]]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Seen here as well, because the caller may have gone away.
            task.exception()

    async def _patiently(self, statement: LiteralString, parameters: Parameters, patience_s: float) -> list[TupleRow]:
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + patience_s
        while True:
            try:
                return await self._once(statement, parameters, give_up_at - clock())
            except PoolClosed as failure:
                raise StoreUnavailable("the store is closed") from failure
            except (ConnectionLost, psycopg.OperationalError) as failure:
                if clock() + PAUSE_S >= give_up_at:
                    raise StoreUnavailable("no answer") from failure
            except psycopg.Error as failure:
                _log.exception("statement refused", sqlstate=failure.sqlstate)
                raise StoreUnavailable("refused by the database") from failure
            await asyncio.sleep(PAUSE_S)

    async def _once(self, statement: LiteralString, parameters: Parameters, left_s: float) -> list[TupleRow]:
        async with self._pool.connection(timeout=left_s) as connection:
            return await fetch(connection, statement, parameters, min(self._statement_s, left_s))
