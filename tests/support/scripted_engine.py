"""An engine that does what a test says: tables as lists of marked events, with updates that can be lost on the way.

Law: speaks the bus's protos and knows no rule. Each event carries the audience whose form it is, so that a test sees at
once who was shown whose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from uuid import UUID

from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import action_pb2, event_pb2, view_pb2
from gouji.table.v1 import table_pb2

from engine.runtime import subjects
from engine.runtime.bus import Bus, Message, Subscription

AUDIENCES = (*(f"seat{seat}" for seat in range(6)), "public")
PLAYERS = ("anna", "boris", "chen", "dora", "emil", "fatma")

Judge = Callable[[engine.CommandRequest], engine.CommandReply]


def accepted(version: int) -> engine.CommandReply:
    """The command took effect."""
    return engine.CommandReply(outcome=table_pb2.Outcome(accepted=table_pb2.Accepted(version=version)))


@dataclass
class ScriptedEngine:
    """Leads one table."""

    bus: Bus
    table_id: UUID
    players: list[str] = field(default_factory=lambda: list(PLAYERS))
    version: int = 1
    commands: list[engine.CommandRequest] = field(default_factory=list)
    histories: list[engine.HistoryRequest] = field(default_factory=list)
    judge: Judge = lambda _: accepted(1)
    history_fault: engine.Fault.ValueType | None = None
    page: int = 1000
    _serving: list[Subscription] = field(default_factory=list)

    async def start(self) -> None:
        """Lead the table's shard."""
        shard = subjects.shard_of(self.table_id)
        self._serving = [
            await self.bus.serve(subjects.command(shard), self._command),
            await self.bus.serve(subjects.history(shard), self._history),
            await self.bus.serve(subjects.export(shard), self._export),
            await self.bus.serve(subjects.moves(shard), self._moves),
            await self.bus.serve(subjects.LIST, self._list),
            await self.bus.serve(subjects.REMATCH, self._rematch),
        ]

    async def stop(self) -> None:
        """Let go of the shard."""
        for serving in self._serving:
            await serving.stop()
        self._serving = []

    async def happen(self, count: int = 1, *, lost_by: Collection[str] = ()) -> None:
        """Let so many events happen in one append, and publish them to everybody but those who lose the message."""
        first, self.version = self.version + 1, self.version + count
        for audience in AUDIENCES:
            if audience not in lost_by:
                events = [self.event(version, audience) for version in range(first, self.version + 1)]
                update = table_pb2.Update(events=events, view=self.view(audience))
                payload = engine.LiveUpdate(update=update).SerializeToString()
                await self.bus.publish(subjects.live(self.table_id, audience), payload)
        await asyncio.sleep(0)

    def event(self, version: int, audience: str) -> table_pb2.VersionedEvent:
        """The event at this version in the form of an audience."""
        mark = event_pb2.Event(warned=event_pb2.Warned(reason=f"{audience}:{version}"))
        return table_pb2.VersionedEvent(version=version, at_ms=version, event=mark)

    def view(self, audience: str) -> view_pb2.View:
        """The newest view of an audience."""
        seats = [view_pb2.SeatView(seat=seat, player_id=player) for seat, player in enumerate(self.players)]
        public = view_pb2.PublicView(phase=view_pb2.TABLE_PHASE_PLAYING, seats=seats)
        view = view_pb2.View(table_id=str(self.table_id), version=self.version, public=public)
        if audience != "public":
            view.private.seat = int(audience[-1])
            view.private.hand = audience
        return view

    async def _command(self, message: Message) -> bytes:
        request = engine.CommandRequest.FromString(message.payload)
        self.commands.append(request)
        return self.judge(request).SerializeToString()

    async def _history(self, message: Message) -> bytes:
        request = engine.HistoryRequest.FromString(message.payload)
        self.histories.append(request)
        if self.history_fault or request.table_id != str(self.table_id):
            fault = self.history_fault or engine.FAULT_NOT_FOUND
            return engine.HistoryReply(fault=fault).SerializeToString()
        return engine.HistoryReply(history=self._past(request)).SerializeToString()

    def _past(self, request: engine.HistoryRequest) -> engine.History:
        seated = request.player_id in self.players and request.player_id
        audience = f"seat{self.players.index(request.player_id)}" if seated else "public"
        last = min(self.version, request.after_version + min(request.limit, self.page))
        versions = range(request.after_version + 1, last + 1)
        return engine.History(
            audience=audience,
            events=[self.event(version, audience) for version in versions],
            view=self.view(audience),
            complete=last >= self.version,
        )

    async def _export(self, message: Message) -> bytes:
        request = engine.ExportRequest.FromString(message.payload)
        return engine.ExportReply(notation=f"deal {request.deal}").SerializeToString()

    async def _moves(self, message: Message) -> bytes:
        request = engine.MovesRequest.FromString(message.payload)
        if request.player_id not in self.players:
            return engine.MovesReply(fault=engine.FAULT_NOT_YOUR_SEAT).SerializeToString()
        seat = self.players.index(request.player_id)
        return engine.MovesReply(moves=table_pb2.ListMovesResponse(version=self.version, seat=seat)).SerializeToString()

    async def _rematch(self, message: Message) -> bytes:
        request = engine.RematchRequest.FromString(message.payload)
        if request.table_id != str(self.table_id):
            return engine.RematchReply(fault=engine.FAULT_NOT_FOUND).SerializeToString()
        if request.caller.player_id not in self.players:
            no = table_pb2.Refused(reason=action_pb2.REASON_NOT_YOUR_TABLE, version=self.version)
            return engine.RematchReply(outcome=table_pb2.Outcome(refused=no)).SerializeToString()
        return engine.RematchReply(outcome=accepted(1).outcome, table_id="the rematch").SerializeToString()

    async def _list(self, message: Message) -> bytes:
        request = engine.ListRequest.FromString(message.payload)
        tables = [table_pb2.TableSummary(table_id=str(self.table_id))] * min(request.limit, 1)
        return engine.ListReply(tables=tables).SerializeToString()
