"""A player who costs little: it reads a frame's view only when the view offers something, and measures its own waits.

Law: an ordinary client of the table service, with a house player's mind; for load only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import uuid4

import grpc
from gouji.game.v1 import view_pb2
from gouji.table.v1 import table_pb2 as pb

from services.bots.player import READY, Player, Wish
from services.bots.sight import Answer, News, Received
from services.bots.table_client import PLAY, TableClient, action_of, answer, sight_of


@dataclass(slots=True)
class Tally:
    """What players have met: seconds from sending an action to its acknowledgement, and what was not accepted."""

    waits: list[float] = field(default_factory=list)
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    frames: int = 0
    frame_bytes: int = 0

    def clear(self) -> None:
        """Forget what came before."""
        self.waits, self.refused, self.faults, self.frames, self.frame_bytes = [], 0, [], 0, 0


class CheapPlayer:
    """One seat's player on a stream of its own."""

    def __init__(self, channel: grpc.aio.Channel, token: str, tally: Tally, seed: int) -> None:
        self._channel = channel
        self._token = token
        self._tally = tally
        self._player = Player(Random(seed))
        self._sent_at = 0.0

    async def sit(self, table_id: str, seat: int) -> None:
        """Take a seat."""
        taken = await TableClient(self._channel, lambda: self._token).take_seat(table_id, str(uuid4()), seat)
        assert taken.accepted_at, taken

    async def play(self, table_id: str) -> None:
        """Play until the match ends or the task is cancelled."""
        method: Any = self._channel.stream_stream(PLAY, request_serializer=pb.PlayRequest.SerializeToString)
        call = method(metadata=(("authorization", f"Bearer {self._token}"),))
        await call.write(pb.PlayRequest(join=pb.Join(table_id=table_id)))
        while not self._player.is_over:
            frame = await call.read()
            if (wish := self._player.take(self._read(frame))) is not None:
                self._sent_at = time.perf_counter()
                await call.write(pb.PlayRequest(move=_move(wish)))

    def _read(self, frame: bytes) -> Received:
        self._tally.frames += 1
        self._tally.frame_bytes += len(frame)
        response = pb.PlayResponse.FromString(frame)
        match response.WhichOneof("response"):
            case "answer":
                return self._answered(
                    answer(response.answer.command_id, response.answer.outcome, response.answer.fault)
                )
            case "update":
                return _news(response.update.view, response.update)
            case "snapshot":
                return _news(response.snapshot.view)
            case _:
                return News(response.heartbeat.version)

    def _answered(self, said: Answer) -> Answer:
        if said.fault:
            self._tally.faults.append(said.fault)
        elif said.accepted_at is None:
            self._tally.refused += 1
        else:
            self._tally.waits.append(time.perf_counter() - self._sent_at)
        return said


def _news(view: view_pb2.View, update: pb.Update | None = None) -> News:
    version = update.events[-1].version if update and update.events else view.version
    is_dull = view.public.phase == view_pb2.TABLE_PHASE_PLAYING and not view.private.options
    return News(version, None if is_dull else sight_of(view))


def _move(wish: Wish) -> pb.Move:
    if wish.choice == READY:
        return pb.Move(command_id=wish.command_id, ready=True, contribution=wish.contribution)
    return pb.Move(command_id=wish.command_id, seen_version=wish.seen_version, action=action_of(wish.choice))
