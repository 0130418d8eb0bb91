"""Tables that faults have set aside, as their leaders tell an operator.

Law: messages in, plain values out.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple
from uuid import UUID

from gouji.engine.v1 import engine_pb2 as pb

from engine.runtime import subjects
from engine.runtime.bus import Bus, NoResponders, RequestTimedOut

CALL_S = 5.0
AT_ONCE = 32
SHARDS = 256


class SetAside(NamedTuple):
    """A table that is set aside, and what broke."""

    table_id: str
    fault: str


class NotReleased(Exception):
    """The engine did not release the table, for this reason."""


class Quarantine:
    """Asks on behalf of an operator, whom the engine logs. Methods raise `BusUnavailable`."""

    def __init__(self, bus: Bus, operator: str) -> None:
        self._bus = bus
        self._caller = pb.Caller(player_id=operator, role="admin")
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def everywhere(self) -> tuple[list[SetAside], list[int]]:
        """All tables that are set aside, and the shards that nobody answers for."""
        answers = await asyncio.gather(*(self._of_shard(shard) for shard in range(SHARDS)))
        silent = [shard for shard, answer in enumerate(answers) if answer is None]
        return sorted(table for answer in answers for table in answer or ()), silent

    async def of(self, table_id: UUID) -> SetAside | None:
        """The table, if it is set aside; also None when nobody leads its shard."""
        answer = await self._of_shard(subjects.shard_of(table_id))
        return next((table for table in answer or () if table.table_id == str(table_id)), None)

    async def release(self, table_id: UUID) -> None:
        """Have the table taken up again from its log. Raises `NotReleased`."""
        shard = subjects.shard_of(table_id)
        try:
            reply = await self._ask(shard, release=str(table_id))
        except (NoResponders, RequestTimedOut) as silence:
            raise NotReleased(f"nobody answers for shard {shard}") from silence
        if reply.fault:
            raise NotReleased(pb.Fault.Name(reply.fault).removeprefix("FAULT_").lower())

    async def _of_shard(self, shard: int) -> list[SetAside] | None:
        async with self._slots:
            try:
                reply = await self._ask(shard)
            except (NoResponders, RequestTimedOut):
                return None
        return [SetAside(table.table_id, table.fault) for table in reply.tables]

    async def _ask(self, shard: int, release: str = "") -> pb.QuarantineReply:
        request = pb.QuarantineRequest(caller=self._caller, shard=shard, release=release)
        answer = await self._bus.request(subjects.quarantine(shard), request.SerializeToString(), timeout=CALL_S)
        return pb.QuarantineReply.FromString(answer)
