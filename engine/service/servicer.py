"""The engine's requests, from the bus's bytes and back.

Law: bytes to values, one call, values to bytes; a fault is an answer. Nothing is decided here but who may ask at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar
from uuid import UUID

import structlog
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Proto
from gouji.engine.v1 import engine_pb2

from engine import match
from engine.match import SEATS
from engine.runtime import faults
from engine.runtime.bus import Message
from engine.service import wire
from engine.service.codec import UnknownEvent
from engine.service.dealer import Dealer
from engine.service.envelopes import wire as envelopes
from engine.service.export import export
from engine.service.faults import Quarantined
from engine.service.history import History, Missed
from engine.service.listing import Listing
from engine.service.orders import Accepted, Order
from engine.service.rematches_client import Rematches
from engine.service.standing import every_event
from engine.service.tables import Tables
from engine.service.waits import shown_ms
from engine.store.port import EventStore, StoreUnavailable, StreamNotFound, shard_of

_log = structlog.get_logger(__name__)

_LONGEST_NAME = 256
_Fault = engine_pb2.Fault
_FAULTS: tuple[tuple[type[faults.Fault], _Fault.ValueType], ...] = (
    (Quarantined, _Fault.FAULT_QUARANTINED),
    (faults.NotFound, _Fault.FAULT_NOT_FOUND),
    (faults.PermissionDenied, _Fault.FAULT_NOT_YOUR_SEAT),
    (faults.MalformedRequest, _Fault.FAULT_MALFORMED),
    (faults.Busy, _Fault.FAULT_BUSY),
    (faults.FailedPrecondition, _Fault.FAULT_NOT_YET),
    (faults.Fault, _Fault.FAULT_UNAVAILABLE),
)

Request = TypeVar("Request", bound=Proto)


class Servicer:
    """Who answers the engine's requests."""

    def __init__(
        self,
        store: EventStore,
        tables: Tables,
        history: History,
        listing: Listing,
        *,
        rematches: Rematches,
        dealer: Dealer,
    ) -> None:
        self._store = store
        self._tables = tables
        self._history = history
        self._listing = listing
        self._rematches = rematches
        self._dealer = dealer

    async def command(self, message: Message) -> bytes:
        """Answer a `CommandRequest`."""
        try:
            request = _read(engine_pb2.CommandRequest, message)
            verdict = await self._tables.judge(_uuid(request.table_id), self._order(request))
        except faults.Fault as fault:
            return engine_pb2.CommandReply(fault=_number(fault), detail=fault.detail).SerializeToString()
        if isinstance(verdict, Accepted):
            outcome = wire.accepted(verdict.version)
        else:
            outcome = wire.refused(verdict.reason, verdict.version)
        return engine_pb2.CommandReply(outcome=outcome).SerializeToString()

    async def history(self, message: Message) -> bytes:
        """Answer a `HistoryRequest`."""
        try:
            request = _read(engine_pb2.HistoryRequest, message)
            table_id = _uuid(request.table_id)
            with _reading():
                missed = await self._history.missed(
                    table_id, request.player_id, request.after_version, request.limit, _as_seat(request)
                )
        except faults.Fault as fault:
            return engine_pb2.HistoryReply(fault=_number(fault)).SerializeToString()
        return engine_pb2.HistoryReply(history=_history(table_id, missed)).SerializeToString()

    async def moves(self, message: Message) -> bytes:
        """Answer a `MovesRequest`."""
        try:
            request = _read(engine_pb2.MovesRequest, message)
            look = await self._tables.look(_uuid(request.table_id))
            seat = match.seat_of(look.standing.match, request.player_id)
            if seat is None:
                raise faults.NotYourSeat
        except faults.Fault as fault:
            return engine_pb2.MovesReply(fault=_number(fault)).SerializeToString()
        listed = wire.moves(look.standing.match, seat, look.standing.version)
        return engine_pb2.MovesReply(moves=listed).SerializeToString()

    async def export(self, message: Message) -> bytes:
        """Answer an `ExportRequest`."""
        try:
            request = _read(engine_pb2.ExportRequest, message)
            with _reading():
                events = await every_event(self._store, _uuid(request.table_id))
                notation = export(events, request.deal)
        except faults.Fault as fault:
            return engine_pb2.ExportReply(fault=_number(fault)).SerializeToString()
        return engine_pb2.ExportReply(notation=notation).SerializeToString()

    async def list(self, message: Message) -> bytes:
        """Answer a `ListRequest`; a list that cannot be made is empty, for it has no place for a fault."""
        try:
            request = _read(engine_pb2.ListRequest, message)
            with _reading():
                listed = await self._listing.newest(request.limit, _uuid(request.before) if request.before else None)
        except faults.Fault as fault:
            _log.warning("tables not listed", reason=fault.reason)
            listed = []
        summaries = [wire.summary(one.table_id, one.match) for one in listed]
        return engine_pb2.ListReply(tables=summaries).SerializeToString()

    async def quarantine(self, message: Message) -> bytes:
        """Answer a `QuarantineRequest`."""
        try:
            request = _read(engine_pb2.QuarantineRequest, message)
            if request.caller.role != wire.ADMIN:
                raise faults.PermissionDenied
            if request.release:
                await self._release(_uuid(request.release), request.caller.player_id)
        except faults.Fault as fault:
            return engine_pb2.QuarantineReply(fault=_number(fault)).SerializeToString()
        tables = [
            engine_pb2.QuarantinedTable(table_id=str(table_id), fault=fault)
            for table_id, fault in self._tables.quarantined()
            if shard_of(table_id) == request.shard
        ]
        return engine_pb2.QuarantineReply(tables=tables).SerializeToString()

    async def _release(self, table_id: UUID, operator: str) -> None:
        """An operator's act, which is always logged."""
        _log.warning("table released", table=str(table_id), by=operator)
        await self._tables.release(table_id)

    async def rematch(self, message: Message) -> bytes:
        """Answer a `RematchRequest`."""
        try:
            request = _read(engine_pb2.RematchRequest, message)
            with _reading():
                reply = await self._rematches.ask(_uuid(request.table_id), request.caller)
        except faults.Fault as fault:
            reply = engine_pb2.RematchReply(fault=_number(fault))
        return reply.SerializeToString()

    def _order(self, request: engine_pb2.CommandRequest) -> Order:
        caller = request.caller
        command = wire.command(request, self._dealer.draw)
        trace_id = caller.request_id[:_LONGEST_NAME] if caller.request_id.isprintable() else ""
        return Order(_uuid(request.command_id), caller.player_id, command, trace_id)


def _history(table_id: UUID, missed: Missed) -> engine_pb2.History:
    standing, deadline, _ = missed.look
    public = wire.public_part(standing.match, shown_ms(standing.match, deadline))
    return engine_pb2.History(
        audience=envelopes.audience_name(missed.audience),
        events=[envelopes.versioned(step, missed.audience) for step in missed.steps],
        view=wire.view(table_id, standing.match, missed.audience, standing.version, public),
        complete=missed.is_complete,
    )


def _as_seat(request: engine_pb2.HistoryRequest) -> int | None:
    """The seat that an operator looks over the shoulder of, which is always logged."""
    if not request.HasField("as_seat"):
        return None
    if request.role != wire.ADMIN:
        raise faults.PermissionDenied
    if request.as_seat not in SEATS:
        raise faults.MalformedRequest("Seats are 0 to 5.")
    _log.warning("table inspected", table=request.table_id, by=request.player_id, seat=request.as_seat)
    return request.as_seat


def _read(kind: type[Request], message: Message) -> Request:
    try:
        return kind.FromString(message.payload)
    except DecodeError as error:
        raise faults.MalformedRequest from error


def _uuid(written: str) -> UUID:
    try:
        return UUID(written)
    except ValueError as error:
        raise faults.MalformedRequest("An id is a UUID.") from error


def _number(fault: faults.Fault) -> _Fault.ValueType:
    return next(number for kind, number in _FAULTS if isinstance(fault, kind))


@contextmanager
def _reading() -> Iterator[None]:
    """Turn what a read of the log may meet into faults."""
    try:
        yield
    except StreamNotFound as error:
        raise faults.NotFound from error
    except StoreUnavailable as error:
        raise faults.Unavailable from error
    except UnknownEvent as error:
        raise Quarantined from error
