"""A house player at one table: it joins, gets ready, acts on what it is offered, and comes back when its stream breaks.

Law: an ordinary client; it holds no secret the server did not send it. At most one command is unanswered at a time, and
an unanswered one is sent again under the same id after a break, so it takes effect once.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol
from uuid import uuid4

import structlog

from services.bots.faults import Stop, TryAgain
from services.bots.mind import choose
from services.bots.pauses import growing
from services.bots.sight import OVER, WAITING, Answer, Choice, Received, Sight

_log = structlog.get_logger(__name__)

READY = Choice("READY")

PASSING = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "BUSY", "RATE_LIMITED", "DRAINING", "NOT_YET"})
"""Faults that pass: the same command is sent again after a pause, on the same stream."""
WENT_BACK = "WENT_BACK"
"""Why a stream ended when the log has lost what it had shown."""


class Line(Protocol):
    """An open stream to the table."""

    async def ready(self, command_id: str, contribution: str) -> None:
        """Say that the player wants the next deal."""
        ...

    async def act(self, command_id: str, seen_version: int, choice: Choice) -> None:
        """Send an action."""
        ...

    async def receive(self) -> Received | None:
        """The next frame. Raises `TryAgain`, `Stop`."""
        ...

    def close(self) -> None:
        """Let the stream go."""
        ...


class Table(Protocol):
    """Whoever can seat a player and open his stream."""

    async def take_seat(self, table_id: str, command_id: str, seat: int) -> Answer:
        """Ask for a seat. Raises `TryAgain`, `Stop`."""
        ...

    async def play(self, table_id: str, after_version: int) -> Line:
        """Open the player's stream after a version. Raises `TryAgain`, `Stop`."""
        ...


@dataclass(frozen=True, slots=True)
class Wish:
    """A command under its id; the choice `READY` is no action and carries the player's share of the next shuffle."""

    command_id: str
    seen_version: int
    choice: Choice
    contribution: str = ""


@dataclass(slots=True)
class Player:
    """What a player knows and wants at a table."""

    chance: random.Random
    version: int = 0
    sight: Sight | None = None
    wish: Wish | None = None
    _refused: set[Choice] = field(default_factory=set)
    _refused_at: int = 0
    _settled_at: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the match has ended."""
        return self.sight is not None and self.sight.phase in OVER

    def take(self, received: Received) -> Wish | None:
        """Take a frame in; tell the command to send because of it, if any."""
        if isinstance(received, Answer):
            return self._heard(received)
        self.version = received.version
        self.sight = received.sight or self.sight
        return self._next()

    def begin_anew(self) -> None:
        """Forget what was seen and settled: the log has lost it."""
        self.version = self._settled_at = 0
        self.sight = self.wish = None

    def _heard(self, answer: Answer) -> Wish | None:
        if self.wish is None or answer.command_id != self.wish.command_id:
            return None
        if answer.fault in PASSING:
            return self.wish
        wish, self.wish = self.wish, None
        if answer.accepted_at is not None:
            self._settled_at = answer.accepted_at
        else:
            self._note(wish.choice, wish.seen_version)
        return self._next()

    def _note(self, choice: Choice, version: int) -> None:
        """Remember what was refused at this version, so as not to try it again before something changes."""
        if version != self._refused_at:
            self._refused_at = version
            self._refused.clear()
        self._refused.add(choice)

    def _next(self) -> Wish | None:
        sight = self.sight
        if self.wish is not None or sight is None or sight.version < max(self._settled_at, self.version):
            return None
        refused = self._refused if sight.version == self._refused_at else frozenset[Choice]()
        self.wish = self._ready(sight, refused) if sight.phase in WAITING else self._act(sight, refused)
        return self.wish

    def _ready(self, sight: Sight, refused: AbstractSet[Choice]) -> Wish | None:
        if sight.is_ready or not sight.may_contribute or READY in refused:
            return None
        return Wish(str(uuid4()), sight.version, READY, contribution=secrets.token_hex(32))

    def _act(self, sight: Sight, refused: AbstractSet[Choice]) -> Wish | None:
        choice = choose(sight, self.chance, refused)
        return None if choice is None else Wish(str(uuid4()), sight.version, choice)


async def play_match(table: Table, table_id: str, seat: int | None = None, *, seed: int | None = None) -> Sight:
    """Play a match to its end and tell the last sight. Takes the seat first, if one is named.

    Raises `Stop` when the service will not have the player here any more.
    """
    player = Player(random.Random(seed))  # noqa: S311 - a player's whims are no secret
    if seat is not None:
        await _sit(table, table_id, seat)
    pauses = growing()
    while True:
        reached = player.version
        try:
            await _play_on(table, table_id, player)
        except TryAgain as broken:
            _log.info("stream_lost", table_id=table_id, reason=str(broken), version=player.version)
            if str(broken) == WENT_BACK:
                player.begin_anew()
        if player.sight is not None and player.sight.phase in OVER:
            return player.sight
        if player.version > reached:
            pauses = growing()
        await asyncio.sleep(next(pauses))


async def _sit(table: Table, table_id: str, seat: int) -> None:
    command_id = str(uuid4())
    for pause in growing():
        try:
            answer = await table.take_seat(table_id, command_id, seat)
        except TryAgain:
            await asyncio.sleep(pause)
            continue
        if answer.refused:
            raise Stop(answer.refused)
        return


async def _play_on(table: Table, table_id: str, player: Player) -> None:
    """Play until the match or the stream ends."""
    line = await table.play(table_id, player.version)
    pauses = growing()
    try:
        if player.wish is not None:
            await _send(line, player.wish)
        while not player.is_over and (frame := await line.receive()) is not None:
            if isinstance(frame, Answer) and frame.fault:
                await asyncio.sleep(next(pauses))
            if (wish := player.take(frame)) is not None:
                await _send(line, wish)
    finally:
        line.close()


async def _send(line: Line, wish: Wish) -> None:
    if wish.choice == READY:
        await line.ready(wish.command_id, wish.contribution)
    else:
        await line.act(wish.command_id, wish.seen_version, wish.choice)
