"""A service's connections to its own Postgres schema.

Law: knows no table. Every connection has the schema as its whole search path, gives a dead link up within seconds, and
runs no statement longer than a bound. What the driver calls out of reach leaves here as `Unavailable`, too many waiting for a connection as `Busy`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg_pool import AsyncConnectionPool, TooManyRequests

from engine.runtime.faults import Busy, Unavailable

_LINK = {
    "connect_timeout": 5,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
}


def pool(
    dsn: str, schema: str, *, size: int = 8, wait_s: float = 5.0, statement_ms: int = 10_000
) -> AsyncConnectionPool:
    """Make a pool of at most `size` connections, not opened yet. `wait_s` bounds the wait for a free one."""
    options = f"-c search_path={schema} -c statement_timeout={statement_ms}"
    return AsyncConnectionPool(
        dsn,
        kwargs={**_LINK, "options": options, "application_name": f"gouji-{schema}"},
        min_size=1,
        max_size=size,
        timeout=wait_s,
        max_waiting=size * 64,
        name=schema,
        open=False,
    )


@contextmanager
def reaching() -> Iterator[None]:
    """Turn the driver's ways to say "out of reach" into `Unavailable`."""
    try:
        yield
    except TooManyRequests as crowd:
        raise Busy from crowd
    except psycopg.OperationalError as trouble:
        raise Unavailable("The database cannot be reached.") from trouble
