"""Matches that were found become tables.

Law: a fact of matchmaking becomes one command to the leader of its table, under an id that follows from the table, so
that a fact delivered twice opens one table. What cannot be answered now is delivered again; what can never be a table
is logged and let go, for matches behind it wait.
"""

from __future__ import annotations

from uuid import UUID, uuid5

import structlog
from google.protobuf.message import DecodeError
from gouji.engine.v1 import engine_pb2
from gouji.matchmaking.v1 import facts_pb2

from engine.runtime import subjects
from engine.runtime.bus import Bus, FactMessage
from engine.runtime.faults import Unavailable
from engine.store.port import shard_of

_log = structlog.get_logger(__name__)

DURABLE = "engine-matches"
_PATIENCE_S = 5.0
_NOT_NOW = frozenset({engine_pb2.FAULT_UNAVAILABLE, engine_pb2.FAULT_BUSY})


class Matches:
    """The consumer of `MatchFound`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def take(self, message: FactMessage) -> None:
        """Open the table. What is raised means: not now, deliver it again."""
        try:
            found = facts_pb2.MatchFound.FromString(message.payload)
            table_id = UUID(found.table_id)
        except (DecodeError, ValueError):
            _log.error("match not readable", subject=message.subject)
            return
        await self._open(table_id, found)

    async def _open(self, table_id: UUID, found: facts_pb2.MatchFound) -> None:
        request = _request(table_id, found)
        answer = await self._bus.request(
            subjects.command(shard_of(table_id)), request.SerializeToString(), timeout=_PATIENCE_S
        )
        reply = engine_pb2.CommandReply.FromString(answer)
        if reply.WhichOneof("reply") == "fault":
            self._judge(table_id, reply)
        elif reply.outcome.HasField("refused"):
            _log.error("match refused", table=str(table_id), reason=reply.outcome.refused.reason)

    def _judge(self, table_id: UUID, reply: engine_pb2.CommandReply) -> None:
        if reply.fault in _NOT_NOW:
            raise Unavailable(reply.detail)
        _log.error("match not opened", table=str(table_id), fault=engine_pb2.Fault.Name(reply.fault))


def _request(table_id: UUID, found: facts_pb2.MatchFound) -> engine_pb2.CommandRequest:
    return engine_pb2.CommandRequest(
        table_id=str(table_id),
        command_id=str(uuid5(table_id, "match found")),
        caller=engine_pb2.Caller(player_id="matchmaking", role="service"),
        open_table=engine_pb2.OpenTable(
            variant_key=found.variant_key, deals=found.deals, players=found.players, ranked=True
        ),
    )
