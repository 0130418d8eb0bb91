"""The engine as this service sees it: questions on the bus to whoever leads the table's shard now.

Law: asks, waits, asks again; decides nothing and keeps nothing. A question nobody hears is put again, under the same
command id, with growing and jittered pauses until the caller's time is up. What the engine could not judge comes out as
one of the runtime's faults; a refusal is an answer.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from google.protobuf.message import DecodeError
from gouji.engine.v1 import engine_pb2 as engine
from gouji.table.v1 import table_pb2

from engine.runtime import faults, subjects
from engine.runtime.bus import Bus, BusUnavailable, NoResponders, RequestTimedOut
from services.table import wire
from services.table.history import Asker

Reply = TypeVar("Reply")

_FAULTS: dict[int, Callable[[str], faults.Fault]] = {
    engine.FAULT_NOT_FOUND: faults.NotFound,
    engine.FAULT_NOT_YOUR_SEAT: faults.NotYourSeat,
    engine.FAULT_MALFORMED: faults.MalformedRequest,
    engine.FAULT_BUSY: faults.Busy,
    engine.FAULT_NOT_YET: lambda detail: faults.FailedPrecondition(detail, reason="NOT_YET"),
    engine.FAULT_QUARANTINED: lambda detail: faults.FailedPrecondition(detail, reason="QUARANTINED"),
}


class _NotNow(Exception):
    """The engine heard the question but cannot answer it yet."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds: at most, for one attempt, and between attempts at first and at most.

    `least`: with less left no attempt is begun, for it would only leave the outcome in doubt.
    """

    longest: float = 8.0
    attempt: float = 2.0
    least: float = 0.2
    first_pause: float = 0.02
    longest_pause: float = 0.5

    def pauses(self) -> Iterator[float]:
        """Endless pauses: each up to twice the one before, at random (full jitter)."""
        ceiling = self.first_pause
        while True:
            yield random.uniform(ceiling / 2, ceiling)  # noqa: S311 - jitter is no secret
            ceiling = min(ceiling * 2, self.longest_pause)


class EngineClient:
    """Puts questions to the engine. All methods raise the runtime's faults."""

    def __init__(self, bus: Bus, patience: Patience | None = None) -> None:
        self._bus = bus
        self._patience = patience or Patience()

    async def command(self, request: engine.CommandRequest, budget: float | None = None) -> table_pb2.Outcome:
        """Have a command judged, within `budget` seconds. The same command id gets the same answer, however often asked."""
        subject = subjects.command(subjects.shard_of(UUID(request.table_id)))
        return await self._ask(subject, request.SerializeToString(), _outcome, budget)

    async def history(self, table_id: UUID, asker: Asker, after: int, limit: int) -> wire.Page:
        """Fetch up to `limit` events after a version in the form of the asker's audience, and the newest sight."""
        request = engine.HistoryRequest(
            table_id=str(table_id), player_id=asker.player_id, role=asker.role, after_version=after, limit=limit
        )
        subject = subjects.history(subjects.shard_of(table_id))
        return await self._ask(subject, request.SerializeToString(), _page, None)

    async def moves(self, table_id: UUID, player_id: str, budget: float | None = None) -> table_pb2.ListMovesResponse:
        """Fetch everything that this player's seat may do now."""
        request = engine.MovesRequest(table_id=str(table_id), player_id=player_id)
        subject = subjects.moves(subjects.shard_of(table_id))
        return await self._ask(subject, request.SerializeToString(), _moves, budget)

    async def export(self, table_id: UUID, deal: int) -> str:
        """Fetch a deal in the notation."""
        request = engine.ExportRequest(table_id=str(table_id), deal=deal)
        subject = subjects.export(subjects.shard_of(table_id))
        return await self._ask(subject, request.SerializeToString(), _notation, None)

    async def rematch(
        self, table_id: UUID, caller: engine.Caller, budget: float | None = None
    ) -> table_pb2.RematchResponse:
        """Open the rematch of a finished table, or find it open. Raises `FailedPrecondition` when it is refused."""
        request = engine.RematchRequest(table_id=str(table_id), caller=caller)
        return await self._ask(subjects.REMATCH, request.SerializeToString(), _rematch, budget)

    async def tables(self, request: engine.ListRequest, budget: float | None = None) -> engine.ListReply:
        """List tables that are not finished."""
        return await self._ask(subjects.LIST, request.SerializeToString(), engine.ListReply.FromString, budget)

    async def _ask(self, subject: str, payload: bytes, read: Callable[[bytes], Reply], budget: float | None) -> Reply:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + min(budget or self._patience.longest, self._patience.longest)
        in_doubt = False
        for pause in self._patience.pauses():
            attempt = min(self._patience.attempt, ends_at - loop.time())
            try:
                return read(await self._bus.request(subject, payload, timeout=attempt))
            except RequestTimedOut:
                in_doubt = True
            except (NoResponders, BusUnavailable, _NotNow):
                pass
            except (DecodeError, wire.Unreadable) as garbage:
                raise faults.Unavailable("The engine's answer makes no sense.") from garbage
            if loop.time() + pause + self._patience.least >= ends_at:
                break
            await asyncio.sleep(pause)
        raise faults.DeadlineExceeded if in_doubt else faults.Unavailable


def _outcome(payload: bytes) -> table_pb2.Outcome:
    reply = engine.CommandReply.FromString(payload)
    if reply.WhichOneof("reply") != "outcome":
        raise _fault(reply.fault, reply.detail)
    return reply.outcome


def _page(payload: bytes) -> wire.Page:
    reply = engine.HistoryReply.FromString(payload)
    if reply.WhichOneof("reply") != "history":
        raise _fault(reply.fault)
    return wire.page_of(reply.history)


def _moves(payload: bytes) -> table_pb2.ListMovesResponse:
    reply = engine.MovesReply.FromString(payload)
    if reply.WhichOneof("reply") != "moves":
        raise _fault(reply.fault)
    return reply.moves


def _rematch(payload: bytes) -> table_pb2.RematchResponse:
    reply = engine.RematchReply.FromString(payload)
    if reply.WhichOneof("reply") != "outcome":
        raise _fault(reply.fault)
    return table_pb2.RematchResponse(table_id=reply.table_id, version=wire.opened_at(reply.outcome))


def _notation(payload: bytes) -> str:
    reply = engine.ExportReply.FromString(payload)
    if reply.WhichOneof("reply") != "notation":
        raise _fault(reply.fault)
    return reply.notation


def _fault(number: int, detail: str = "") -> Exception:
    known = _FAULTS.get(number)
    return known(detail) if known else _NotNow()
