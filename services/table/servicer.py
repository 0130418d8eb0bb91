"""The table service's RPCs: read the request, ask, write the answer.

Law: translation only. Faults pass through to the interceptor, which knows their statuses.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import grpc
from gouji.engine.v1 import engine_pb2 as engine
from gouji.table.v1 import table_pb2 as pb
from gouji.table.v1 import table_pb2_grpc as rpc

from engine.runtime import logs
from engine.runtime.faults import DeadlineExceeded, Fault, MalformedRequest
from services.table import shapes, wire
from services.table.engine_client import EngineClient
from services.table.history import Asker
from services.table.limits import Limits
from services.table.streams import Stream
from services.table.watchers import Watchers

SERVICE = "gouji.table.v1.TableService"

MOST_TABLES = 50
"""Tables on one page of a list."""

MARGIN_S = 0.1
"""Kept back from a caller's deadline, so that he still gets the answer that there was none."""

JOIN_S = 10.0
"""How long a Play stream may wait with its first message."""

Context = grpc.aio.ServicerContext[Any, Any]
Identify = Callable[[], Asker]
"""Tells who calls, as the interceptor has authenticated him."""


class Commands:
    """Puts a player's commands to the engine, within his limits."""

    def __init__(self, engine_client: EngineClient, watchers: Watchers, limits: Limits) -> None:
        self._engine = engine_client
        self._watchers = watchers
        self._limits = limits

    async def judged(
        self, asker: Asker, ids: wire.Ids, command: engine.CommandRequest, budget: float | None = None
    ) -> pb.Outcome:
        """Have a command judged; the watchers are told of the version that the answer names."""
        self._limits.actions.take(asker.player_id)
        request = engine.CommandRequest(table_id=str(ids.table), command_id=str(ids.command), caller=_caller(asker))
        request.MergeFrom(command)
        outcome = await self._engine.command(request, budget)
        self._watchers.told(ids.table, max(outcome.accepted.version, outcome.refused.version))
        return outcome


class TableServicer(rpc.TableServiceServicer):
    """Serves players. The two streams write responses that are serialised already, so they are registered as such."""

    def __init__(
        self, commands: Commands, engine_client: EngineClient, watchers: Watchers, limits: Limits, who: Identify
    ) -> None:
        self._commands = commands
        self._engine = engine_client
        self._watchers = watchers
        self._limits = limits
        self._who = who

    async def OpenTable(self, request: pb.OpenTableRequest, context: Context) -> pb.OpenTableResponse:
        """Open the table that this caller and command id name."""
        asker, command = self._who(), engine.CommandRequest(open_table=wire.open_table(request))
        ids = wire.opening_ids(request.command_id, asker.player_id, _now_ms())
        self._limits.openings.take(asker.player_id)
        outcome = await self._commands.judged(asker, ids, command, _budget(context))
        return wire.opened(ids.table, outcome)

    async def Rematch(self, request: pb.RematchRequest, context: Context) -> pb.RematchResponse:
        """Open another table for the six of a finished match; counted as an opening, whoever it was that opened it."""
        asker, table_id = self._who(), shapes.uuid("table_id", request.table_id)
        self._limits.openings.take(asker.player_id)
        return await self._engine.rematch(table_id, _caller(asker), _budget(context))

    async def ListTables(self, request: pb.ListTablesRequest, context: Context) -> pb.ListTablesResponse:
        """List tables that are not finished."""
        wanted = wire.listing(request, MOST_TABLES)
        return wire.listed(await self._engine.tables(wanted, _budget(context)))

    async def TakeSeat(self, request: pb.TakeSeatRequest, context: Context) -> pb.TakeSeatResponse:
        """Seat the caller."""
        command = engine.CommandRequest(take_seat=wire.take_seat(request))
        return pb.TakeSeatResponse(outcome=await self._judged(request, command, context))

    async def LeaveSeat(self, request: pb.LeaveSeatRequest, context: Context) -> pb.LeaveSeatResponse:
        """Let the caller's seat go."""
        command = engine.CommandRequest(leave_seat=engine.LeaveSeat())
        return pb.LeaveSeatResponse(outcome=await self._judged(request, command, context))

    async def SetReady(self, request: pb.SetReadyRequest, context: Context) -> pb.SetReadyResponse:
        """Say whether the caller wants the next deal."""
        command = engine.CommandRequest(set_ready=wire.set_ready(request))
        return pb.SetReadyResponse(outcome=await self._judged(request, command, context))

    async def Act(self, request: pb.ActRequest, context: Context) -> pb.ActResponse:
        """Have one action judged."""
        command = engine.CommandRequest(act=wire.act(request))
        return pb.ActResponse(outcome=await self._judged(request, command, context))

    async def GetView(self, request: pb.GetViewRequest, context: Context) -> pb.GetViewResponse:  # noqa: ARG002 - gRPC's
        """Show the table as the caller's role sees it."""
        table_id = shapes.uuid("table_id", request.table_id)
        page = await self._engine.history(table_id, self._who(), 0, 1)
        return pb.GetViewResponse(view=page.sight.view(self._watchers.connected(table_id)))

    async def ListMoves(self, request: pb.ListMovesRequest, context: Context) -> pb.ListMovesResponse:
        """List what the caller's seat may do; counted as an action, for it costs the engine as much as some."""
        asker, table_id = self._who(), shapes.uuid("table_id", request.table_id)
        self._limits.actions.take(asker.player_id)
        return await self._engine.moves(table_id, asker.player_id, _budget(context))

    async def ExportDeal(self, request: pb.ExportDealRequest, context: Context) -> pb.ExportDealResponse:  # noqa: ARG002 - gRPC's
        """Hand a deal out for checking."""
        table_id = shapes.uuid("table_id", request.table_id)
        deal = shapes.below("deal", request.deal, shapes.MOST_DEALS)
        return pb.ExportDealResponse(notation=await self._engine.export(table_id, deal))

    async def _judged(self, request: wire.Addressed, command: engine.CommandRequest, context: Context) -> pb.Outcome:
        return await self._commands.judged(self._who(), wire.ids(request), command, _budget(context))

    async def Watch(self, request: pb.WatchRequest, context: Context) -> None:  # type: ignore[override]  # writes itself
        """Send updates in the role that the log decides."""
        asker, table_id = self._who(), shapes.uuid("table_id", request.table_id)
        with self._limits.stream(asker.player_id):
            async with self._watchers.stream(table_id, asker, request.after_version, is_play=False) as stream:
                await stream.run(context.write)

    async def Play(  # type: ignore[override]  # writes itself
        self, requests: AsyncIterator[pb.PlayRequest], context: Context
    ) -> None:
        """Send a seated player updates and answers to the moves that come in."""
        asker, join = self._who(), await _join(requests)
        table_id = shapes.uuid("table_id", join.table_id)
        with self._limits.stream(asker.player_id):
            async with self._watchers.stream(table_id, asker, join.after_version, is_play=True) as stream:
                moving = asyncio.create_task(self._take_moves(requests, stream, asker, table_id))
                try:
                    await stream.run(context.write)
                finally:
                    moving.cancel()

    async def _take_moves(
        self, requests: AsyncIterator[pb.PlayRequest], stream: Stream, asker: Asker, table_id: UUID
    ) -> None:
        """Answer one move after the other; the next is not read before."""
        try:
            async for request in requests:
                answer = await self._answer(_move(request), asker, table_id)
                await stream.answer(pb.PlayResponse(answer=answer).SerializeToString())
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the stream, and the door tells of it
            stream.end(error)
        else:
            stream.finish()

    async def _answer(self, move: pb.Move, asker: Asker, table_id: UUID) -> pb.Answer:
        try:
            ids = wire.Ids(table_id, shapes.uuid("command_id", move.command_id))
            outcome = await self._commands.judged(asker, ids, wire.moved(move))
        except Fault as fault:
            return pb.Answer(command_id=move.command_id, fault=fault.reason)
        return pb.Answer(command_id=move.command_id, outcome=outcome)


def register(server: grpc.aio.Server, servicer: TableServicer) -> None:
    """Serve; the handlers of the streams take the place of the generated ones, which would serialise once more."""
    rpc.add_TableServiceServicer_to_server(servicer, server)
    streams: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "Watch": grpc.unary_stream_rpc_method_handler(servicer.Watch, pb.WatchRequest.FromString),
        "Play": grpc.stream_stream_rpc_method_handler(servicer.Play, pb.PlayRequest.FromString),
    }
    server.add_registered_method_handlers(SERVICE, streams)


async def _join(requests: AsyncIterator[pb.PlayRequest]) -> pb.Join:
    """The first message of a Play stream. Raises `MalformedRequest`, `DeadlineExceeded`."""
    try:
        async with asyncio.timeout(JOIN_S):
            first = await anext(requests, None)
    except TimeoutError:
        raise DeadlineExceeded("The stream's first message did not come.") from None
    if first is None or first.WhichOneof("request") != "join":
        raise MalformedRequest("The first message of a Play stream joins a table.")
    return first.join


def _move(request: pb.PlayRequest) -> pb.Move:
    if request.WhichOneof("request") != "move":
        raise MalformedRequest("A Play stream joins once and moves afterwards.")
    return request.move


def _caller(asker: Asker) -> engine.Caller:
    return engine.Caller(player_id=asker.player_id, role=asker.role, request_id=logs.request_id())


def _budget(context: Context) -> float | None:
    """The seconds that the caller will wait; None when he has not said."""
    left = context.time_remaining()
    return max(MARGIN_S, left - MARGIN_S) if left else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
