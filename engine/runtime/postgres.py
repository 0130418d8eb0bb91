"""A service's connections to its own Postgres schema.

Law: knows no table. Every connection has the schema as its whole search path, is to a server that can be written to (of
several that a DSN may name), gives a dead link up within seconds, and runs no statement longer than a bound. What the driver calls out of reach leaves here as `Unavailable`, too many waiting
for a connection as `Busy`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, TooManyRequests

from engine.runtime.faults import Busy, Unavailable

_LINK = {
    "connect_timeout": 5,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
    "target_session_attrs": "read-write",
}

_FORGETFUL = """
select name from pg_settings
where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off' order by name
"""


class Link(AsyncConnection[TupleRow]):
    """A connection whose transaction ends with its caller: who goes away in the middle has the link cut."""

    async def cancel_safe(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - the driver's name
        """Cut the link, where the driver would ask the server, over another one, and wait for it."""
        del timeout
        _cut(self)


class Pool(AsyncConnectionPool[AsyncConnection[TupleRow]]):
    """A pool that cuts the link of a transaction that has taken longer than `transaction_s` seconds.

    The driver would ask the server to give up, and wait for it, however dead the link is. What is cut fails at once,
    its outcome unknown, and its connection is thrown away.
    """

    transaction_s: float | None = None

    @asynccontextmanager
    async def connection(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the driver's name
    ) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """Lend a connection for one transaction, committed at the end of the block unless it raises."""
        async with super().connection(timeout) as connection:
            if self.transaction_s is None:
                yield connection
                return
            cutting = asyncio.get_running_loop().call_later(self.transaction_s, _cut, connection)
            try:
                yield connection
            finally:
                cutting.cancel()


def pool(
    dsn: str,
    schema: str,
    *,
    size: int = 8,
    wait_s: float = 5.0,
    statement_ms: int = 10_000,
    transaction_s: float | None = None,
) -> Pool:
    """Make a pool of at most `size` connections, not opened yet. `wait_s` bounds the wait for a free one."""
    options = f"-c search_path={schema} -c statement_timeout={statement_ms}"
    made = Pool(
        dsn,
        connection_class=Link,
        kwargs={**_LINK, "options": options, "application_name": f"gouji-{schema}"},
        min_size=1,
        max_size=size,
        timeout=wait_s,
        max_waiting=size * 64,
        name=schema,
        open=False,
    )
    made.transaction_s = transaction_s
    return made


async def forgetful(lent: AsyncConnectionPool) -> tuple[str, ...]:
    """Name the settings by which the server forgets what it has acknowledged when it crashes."""
    async with lent.connection() as connection:
        return tuple(name for (name,) in await (await connection.execute(_FORGETFUL)).fetchall())


@contextmanager
def reaching() -> Iterator[None]:
    """Turn the driver's ways to say "out of reach" into `Unavailable`."""
    try:
        yield
    except TooManyRequests as crowd:
        raise Busy from crowd
    except psycopg.OperationalError as trouble:
        raise Unavailable("The database cannot be reached.") from trouble


def _cut(connection: AsyncConnection[TupleRow]) -> None:
    """Shut the socket down under a statement, so that it fails now; closing it would free its number too early."""
    if connection.closed:
        return
    wire = socket.socket(fileno=connection.pgconn.socket)
    try:
        wire.shutdown(socket.SHUT_RDWR)
    finally:
        wire.detach()
