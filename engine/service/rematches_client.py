"""Rematches: a finished match becomes the opening of another table.

Law: whoever of the six asks, and however often, gets the same table, for its id and its command's id follow from the
finished match alone. The log is only read, so that any replica may be asked; the opening is put to whoever leads the
new table. What cannot be answered now is a fault, and asking again is harmless.
"""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID, uuid5

from gouji.engine.v1 import engine_pb2

from engine import match
from engine.match import MatchReason, OpenTable
from engine.runtime import subjects
from engine.runtime.bus import Bus, BusUnavailable, NoResponders, RequestTimedOut
from engine.runtime.clock import Clock
from engine.runtime.faults import Unavailable
from engine.runtime.uuid7 import uuid7
from engine.service import wire
from engine.service.standing import Standing, fold
from engine.store.port import EventStore, StreamNotFound, shard_of

WITHIN_MS = 3_600_000
"""How long after the end of a match its rematch may be opened: ids of tables tell when they were opened."""

_PATIENCE_S = 1.5


class Rematches:
    """Opens rematches."""

    def __init__(self, store: EventStore, bus: Bus, clock: Clock) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock

    async def ask(self, table_id: UUID, caller: engine_pb2.Caller) -> engine_pb2.RematchReply:
        """Open the rematch of this table, or find it open; refuse by the table's own reasons.

        Raises `Unavailable`, and `StreamNotFound`, `StoreUnavailable`, `UnknownEvent` as the log does.
        """
        standing = await fold(self._store, table_id)
        opening = match.rematch(standing.match, caller.player_id)
        if isinstance(opening, match.Refused):
            return _refused(opening.reason, standing)
        ended_at_ms = await self._ended_at_ms(table_id, standing.version)
        rematch_id = id_of_rematch(table_id, ended_at_ms)
        if self._clock.now_ms() - ended_at_ms > WITHIN_MS and not await self._is_open(rematch_id):
            return _refused(MatchReason.NO_REMATCH, standing)
        reply = await self._open(rematch_id, caller, opening)
        if reply.WhichOneof("reply") == "fault":
            return engine_pb2.RematchReply(fault=reply.fault)
        return engine_pb2.RematchReply(outcome=reply.outcome, table_id=str(rematch_id))

    async def _ended_at_ms(self, table_id: UUID, version: int) -> int:
        (last,) = await self._store.read(table_id, version - 1, 1)
        return last.at_ms

    async def _is_open(self, table_id: UUID) -> bool:
        try:
            await self._store.head(table_id)
        except StreamNotFound:
            return False
        return True

    async def _open(self, table_id: UUID, caller: engine_pb2.Caller, opening: OpenTable) -> engine_pb2.CommandReply:
        request = engine_pb2.CommandRequest(
            table_id=str(table_id),
            command_id=str(uuid5(table_id, "rematch")),
            caller=engine_pb2.Caller(player_id=caller.player_id, role=wire.SERVICE, request_id=caller.request_id),
            open_table=wire.opening(opening),
        )
        subject = subjects.command(shard_of(table_id))
        try:
            answer = await self._bus.request(subject, request.SerializeToString(), timeout=_PATIENCE_S)
        except (NoResponders, RequestTimedOut, BusUnavailable) as error:
            raise Unavailable from error
        return engine_pb2.CommandReply.FromString(answer)


def id_of_rematch(table_id: UUID, ended_at_ms: int) -> UUID:
    """The table of the rematch: a UUIDv7 of the moment in which the match ended, random as the hash of its table's id."""
    digest = sha256(b"gouji rematch 1\n" + table_id.bytes).digest()
    return uuid7(ended_at_ms, lambda size: digest[:size])


def _refused(reason: MatchReason, standing: Standing) -> engine_pb2.RematchReply:
    return engine_pb2.RematchReply(outcome=wire.refused(reason, standing.version))
