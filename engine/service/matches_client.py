"""Matches that were found become tables.

Law: a fact of matchmaking becomes one command to the leader of its table, under an id that follows from the table, so
that a fact delivered twice opens one table. What cannot be answered now is delivered again; what can never be a table
is logged and let go, for matches behind it wait. A match whose time is over is let go too: its players wait for another
table. One that was opened too late all the same is withdrawn, and its table closed before anybody was told of it.
"""

from __future__ import annotations

from uuid import UUID, uuid5

import structlog
from google.protobuf.message import DecodeError
from gouji.engine.v1 import engine_pb2
from gouji.matchmaking.v1 import facts_pb2

from engine.runtime import subjects
from engine.runtime.bus import Bus, FactMessage
from engine.runtime.clock import Clock
from engine.runtime.faults import Unavailable
from engine.store.port import shard_of

_log = structlog.get_logger(__name__)

DURABLE = "engine-matches"
_PATIENCE_S = 5.0
_NOT_NOW = frozenset({engine_pb2.FAULT_UNAVAILABLE, engine_pb2.FAULT_BUSY})


class Matches:
    """The consumer of `MatchFound`."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock

    async def take(self, message: FactMessage) -> None:
        """Open the table, or close it again. What is raised means: not now, deliver it again."""
        try:
            found = facts_pb2.MatchFound.FromString(message.payload)
            table_id = UUID(found.table_id)
        except (DecodeError, ValueError):
            _log.error("match not readable", subject=message.subject)
            return
        if found.withdrawn:
            await self._send(_closing(table_id), _PATIENCE_S)
            _log.warning("match withdrawn", table=str(table_id))
        else:
            await self._open(table_id, found)

    async def _open(self, table_id: UUID, found: facts_pb2.MatchFound) -> None:
        left_s = self._left_s(found)
        if left_s > 0:
            await self._send(_opening(table_id, found), left_s)
        else:
            _log.warning("match lapsed", table=str(table_id))

    def _left_s(self, found: facts_pb2.MatchFound) -> float:
        """How long the table may still be opened, as far as it concerns one request, seconds."""
        if not found.open_before_ms:
            return _PATIENCE_S
        return min(_PATIENCE_S, (found.open_before_ms - self._clock.now_ms()) / 1000)

    async def _send(self, request: engine_pb2.CommandRequest, patience_s: float) -> None:
        answer = await self._bus.request(
            subjects.command(shard_of(UUID(request.table_id))), request.SerializeToString(), timeout=patience_s
        )
        reply = engine_pb2.CommandReply.FromString(answer)
        if reply.WhichOneof("reply") == "fault":
            self._judge(request, reply)
        elif reply.outcome.HasField("refused"):
            _log.error("match refused", table=request.table_id, reason=reply.outcome.refused.reason)

    def _judge(self, request: engine_pb2.CommandRequest, reply: engine_pb2.CommandReply) -> None:
        if reply.fault in _NOT_NOW:
            raise Unavailable(reply.detail)
        _log.error("match not opened", table=request.table_id, fault=engine_pb2.Fault.Name(reply.fault))


def _opening(table_id: UUID, found: facts_pb2.MatchFound) -> engine_pb2.CommandRequest:
    return engine_pb2.CommandRequest(
        table_id=str(table_id),
        command_id=str(uuid5(table_id, "match found")),
        caller=engine_pb2.Caller(player_id="matchmaking", role="service"),
        open_table=engine_pb2.OpenTable(
            variant_key=found.variant_key, deals=found.deals, players=found.players, ranked=True
        ),
    )


def _closing(table_id: UUID) -> engine_pb2.CommandRequest:
    """Close it in the house's name, which only the engine's own words may use."""
    return engine_pb2.CommandRequest(
        table_id=str(table_id),
        command_id=str(uuid5(table_id, "match withdrawn")),
        caller=engine_pb2.Caller(player_id="matchmaking", role="admin"),
        house=engine_pb2.House(kind=engine_pb2.House.KIND_CLOSE, reason="opened_too_late"),
    )
