"""The table service as a house player uses it: an ordinary client over gRPC.

Law: messages in, plain values out. Every response of a stream is shown to `observe` as the bytes that came, before
anything is made of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
from gouji.game.v1 import action_pb2, view_pb2
from gouji.table.v1 import table_pb2 as pb
from gouji.table.v1 import table_pb2_grpc as rpc

from engine.runtime.grpc_client import Token
from services.bots.faults import TryAgain, fault_of
from services.bots.sight import Answer, Choice, News, Option, Received, Sight

PLAY = "/gouji.table.v1.TableService/Play"

SILENCE_S = 15.0
"""Three heartbeats: a stream that says nothing for so long is dead."""

CALL_S = 10.0
"""The deadline of a call with one answer."""

PlayCall = grpc.aio.StreamStreamCall[Any, Any]
Observe = Callable[[bytes], None]


class PlayStream:
    """An open Play stream."""

    def __init__(self, call: PlayCall, observe: Observe) -> None:
        self._call = call
        self._observe = observe

    async def join(self, table_id: str, after_version: int) -> None:
        """Say which table the stream is of, and what is already known of it."""
        await self._write(pb.PlayRequest(join=pb.Join(table_id=table_id, after_version=after_version)))

    async def ready(self, command_id: str, contribution: str) -> None:
        """Say that the player wants the next deal."""
        move = pb.Move(command_id=command_id, ready=True, contribution=contribution)
        await self._write(pb.PlayRequest(move=move))

    async def act(self, command_id: str, seen_version: int, choice: Choice) -> None:
        """Send an action."""
        move = pb.Move(command_id=command_id, seen_version=seen_version, action=action_of(choice))
        await self._write(pb.PlayRequest(move=move))

    async def receive(self) -> Received | None:
        """The next frame; None when the service has ended the stream in peace. Raises the faults of `faults.py`."""
        try:
            async with asyncio.timeout(SILENCE_S):
                response = await self._call.read()
        except TimeoutError:
            raise TryAgain("SILENCE") from None
        except grpc.aio.AioRpcError as error:
            raise fault_of(error) from error
        if not isinstance(response, bytes):
            return None
        self._observe(response)
        return received(pb.PlayResponse.FromString(response))

    def close(self) -> None:
        """Let the stream go."""
        self._call.cancel()

    async def _write(self, request: pb.PlayRequest) -> None:
        """Write; what is said to a stream that has ended meanwhile is lost, and the next read tells how it ended."""
        try:
            await self._call.write(request)
        except asyncio.InvalidStateError:
            return
        except grpc.aio.AioRpcError as error:
            raise fault_of(error) from error


class TableClient:
    """Calls the table service as one player."""

    def __init__(self, channel: grpc.aio.Channel, token: Token, observe: Observe = lambda _: None) -> None:
        self._channel = channel
        self._stub: rpc.TableServiceAsyncStub = rpc.TableServiceStub(channel)
        self._token = token
        self._observe = observe

    async def open_table(self, command_id: str, variant_key: str, deals: int, switches: tuple[str, ...] = ()) -> str:
        """Open the table that this player and command id name, and tell its id."""
        request = pb.OpenTableRequest(command_id=command_id, variant_key=variant_key, deals=deals, switches=switches)
        return str((await self._call(self._stub.OpenTable, request)).table_id)

    async def take_seat(self, table_id: str, command_id: str, seat: int) -> Answer:
        """Ask for a seat."""
        request = pb.TakeSeatRequest(table_id=table_id, command_id=command_id, seat=seat)
        return answer(command_id, (await self._call(self._stub.TakeSeat, request)).outcome)

    async def play(self, table_id: str, after_version: int) -> PlayStream:
        """Open the player's stream after a version."""
        method: grpc.aio.StreamStreamMultiCallable[Any, Any] = self._channel.stream_stream(
            PLAY, request_serializer=pb.PlayRequest.SerializeToString
        )
        call = method(metadata=self._metadata())
        stream = PlayStream(call, self._observe)
        await stream.join(table_id, after_version)
        return stream

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._token()}"),)

    async def _call(self, method: Callable[..., Any], request: object) -> Any:
        try:
            return await method(request, metadata=self._metadata(), timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            raise fault_of(error) from error


def action_of(choice: Choice) -> action_pb2.Action:
    """Write a choice as an action."""
    kind = action_pb2.ActionKind.Value(f"ACTION_KIND_{choice.kind}")
    return action_pb2.Action(kind=kind, cards=choice.cards, ranks=choice.ranks, seat=choice.seat)


def received(response: pb.PlayResponse) -> Received:
    """Read a frame."""
    match response.WhichOneof("response"):
        case "answer":
            return answer(response.answer.command_id, response.answer.outcome, response.answer.fault)
        case "update":
            return _news(response.update)
        case "snapshot":
            return News(response.snapshot.view.version, sight_of(response.snapshot.view))
        case _:
            return News(response.heartbeat.version)


def answer(command_id: str, outcome: pb.Outcome, fault: str = "") -> Answer:
    """Read what became of a command."""
    if fault:
        return Answer(command_id, fault=fault)
    if outcome.WhichOneof("outcome") == "accepted":
        return Answer(command_id, accepted_at=outcome.accepted.version)
    name = action_pb2.Reason.Name(outcome.refused.reason)
    return Answer(command_id, refused=name.removeprefix("REASON_"))


def _news(update: pb.Update) -> News:
    sight = sight_of(update.view) if update.HasField("view") else None
    version = update.events[-1].version if update.events else update.view.version
    return News(version, sight)


def sight_of(view: view_pb2.View) -> Sight:
    """Read a seat's view."""
    public, private = view.public, view.private
    mine = next((seat for seat in public.seats if seat.seat == private.seat), view_pb2.SeatView())
    return Sight(
        version=view.version,
        phase=view_pb2.TablePhase.Name(public.phase).removeprefix("TABLE_PHASE_"),
        seat=private.seat,
        is_ready=mine.ready,
        may_contribute=bool(public.next_commitment),
        hand=private.hand,
        options=tuple(_option(option) for option in private.options),
        owner=public.table.owner if public.HasField("table") else None,
        deal=public.deal,
        points=tuple(seat.points for seat in public.seats),
    )


def _option(option: view_pb2.Option) -> Option:
    kind = action_pb2.ActionKind.Name(option.kind).removeprefix("ACTION_KIND_")
    return Option(kind, tuple(option.hints), tuple(option.seats))
