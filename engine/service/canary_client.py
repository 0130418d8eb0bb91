"""A canary: a question that goes the whole way a player's command goes, short of the append.

Law: asks the bus for the history of a table that does not exist, in a shard that this replica leads. Only the right
answer, given by whoever serves the shard and told by the store, is a sign of life.
"""

from __future__ import annotations

from uuid import UUID

from gouji.engine.v1 import engine_pb2

from engine.runtime import subjects
from engine.runtime.bus import Bus, BusUnavailable, NoResponders, RequestTimedOut
from engine.service.shards import Shards

_PATIENCE_S = 1.5


class Canary:
    """Tells whether this replica can do its work."""

    def __init__(self, bus: Bus, shards: Shards) -> None:
        self._bus = bus
        self._shards = shards

    async def sings(self) -> bool:
        """Whether a question to one of this replica's shards is answered; False also when it leads none."""
        held = self._shards.held()
        if not held:
            return False
        nowhere = UUID(bytes=bytes(15) + bytes([held[0]]))
        request = engine_pb2.HistoryRequest(table_id=str(nowhere))
        try:
            answer = await self._bus.request(
                subjects.history(held[0]), request.SerializeToString(), timeout=_PATIENCE_S
            )
        except (BusUnavailable, NoResponders, RequestTimedOut):
            return False
        return engine_pb2.HistoryReply.FromString(answer).fault == engine_pb2.FAULT_NOT_FOUND
