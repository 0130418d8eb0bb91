"""Statements of one connection that are prepared by name and sent over and over with parameters packed beforehand.

Law: knows no table. The driver looks at every parameter of every statement anew, which is most of what a round trip
costs this process; here a statement goes to the server as it is, and its answer comes back as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import LiteralString

from psycopg import errors, generators, pq

from engine.store.sessions import Connection, bounded

_DONE = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


async def prepare(connection: Connection, name: str, statement: LiteralString, seconds: float) -> None:
    """Have the server plan a statement, whose parameters are `$1`, `$2` ... Raises what `sessions.bounded` does."""
    send = partial(connection.pgconn.send_prepare, name.encode(), statement.encode())
    await bounded(connection, _answer(connection, send), seconds)


async def integers(connection: Connection, name: str, parameters: Sequence[bytes], seconds: float) -> set[int]:
    """Run a prepared statement that answers one column of integers. Raises what `sessions.bounded` does."""
    formats = [pq.Format.BINARY] * len(parameters)
    send = partial(connection.pgconn.send_query_prepared, name.encode(), parameters, formats, pq.Format.BINARY)
    result = await bounded(connection, _answer(connection, send), seconds)
    return {int.from_bytes(result.get_value(row, 0) or b"", "big", signed=True) for row in range(result.ntuples)}


async def _answer(connection: Connection, send: Callable[[], None]) -> pq.abc.PGresult:
    send()
    result: pq.abc.PGresult
    (result,) = await connection.wait(generators.execute(connection.pgconn))
    if result.status not in _DONE:
        raise errors.error_from_result(result)
    return result
