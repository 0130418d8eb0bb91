"""An engine on a bus, and callers who ask it what the table service would ask.

Law: speaks the bus's protos and knows no rule: players do what their own view offers them. Every answer and every live
message is kept, so that a test can hold the log against what was said and shown.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID, uuid4

from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import action_pb2, view_pb2
from gouji.table.v1 import table_pb2
from prometheus_client import CollectorRegistry

from engine.runtime import subjects
from engine.runtime.bus import Bus, BusUnavailable, Message, NoResponders, RequestTimedOut
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.uuid7 import uuid7
from engine.service.main import Engine, start_engine
from engine.service.settings import EngineTerms
from engine.service.shards import LeaseTerms
from engine.service.waits import Spans
from engine.store.port import EventStore, shard_of

PLAYERS = ("anna", "boris", "chen", "dora", "emil", "fatma")
AUDIENCES = (*(f"seat{seat}" for seat in range(6)), "public")
PATIENT = Spans(turn_ms=60_000, window_ms=60_000, between_ms=60_000, gathering_ms=60_000)
QUICK_LEASES = LeaseTerms(ttl_ms=1_500, renew_ms=300)

Kind = action_pb2.ActionKind
Reply = TypeVar("Reply", engine.CommandReply, engine.HistoryReply)


@dataclass
class Replica:
    """A running engine of a test."""

    life: Lifecycle
    engine: Engine
    registry: CollectorRegistry
    bus: Bus

    async def stop(self) -> None:
        """A clean stop."""
        await self.life._stop_all()

    async def crash(self) -> None:
        """Die without a word: nothing is released, nothing is finished."""
        for name, stop in reversed(self.life._stops):
            if name in {"shards", "deadlines", "sweep", "outbox", "doors"} and stop.__name__ == "cancel":
                await stop()
        await self.bus.close()

    def value(self, name: str, **labels: str) -> float:
        """A metric."""
        return self.registry.get_sample_value(name, labels) or 0.0


async def eventually(holds: Callable[[], Awaitable[bool]], within: float = 10.0) -> None:
    """Wait until this holds."""
    async with asyncio.timeout(within):
        while not await holds():  # noqa: ASYNC110 - what is waited for is seen only from outside
            await asyncio.sleep(0.02)


def _now(holds: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def ask() -> bool:
        return holds()

    return ask


async def start(
    store: EventStore, bus: Bus, owner: str = "a", spans: Spans = PATIENT, leases: LeaseTerms = QUICK_LEASES
) -> Replica:
    """Start an engine and wait until it leads."""
    life, registry = Lifecycle(), CollectorRegistry()
    terms = EngineTerms(owner=owner, leases=leases, spans=spans, sweep_ms=100)
    started = await start_engine(life, store, bus, terms=terms, registry=registry)
    await eventually(_now(lambda: bool(started.shards.held())))
    return Replica(life, started, registry, bus)


@dataclass
class Callers:
    """Everybody who asks about one table.

    `patience_s`: how long they go on asking; `answer_s`: after how long without an answer they ask again.
    """

    bus: Bus
    table_id: UUID = field(default_factory=uuid7)
    patience_s: float = 15.0
    answer_s: float = 2.0
    shown: dict[str, list[table_pb2.Update]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: dict[UUID, int] = field(default_factory=dict)

    async def watch(self) -> None:
        """Keep every live message of the table."""
        for audience in AUDIENCES:
            await self.bus.subscribe(subjects.live(self.table_id, audience), self._keep(audience))

    def _keep(self, audience: str) -> Callable[[Message], asyncio.Future[None]]:
        async def keep(message: Message) -> None:
            self.shown[audience].append(engine.LiveUpdate.FromString(message.payload).update)

        return keep  # type: ignore[return-value]

    async def send(self, player: str, *, command_id: UUID | None = None, **command: object) -> engine.CommandReply:
        """Send a command until it is answered, as the table service does."""
        command_id = command_id or uuid4()
        request = engine.CommandRequest(
            table_id=str(self.table_id),
            command_id=str(command_id),
            caller=engine.Caller(player_id=player, role=_role(player)),
            **command,  # type: ignore[arg-type]
        )
        subject = subjects.command(shard_of(self.table_id))
        reply = await self._ask(subject, request.SerializeToString(), engine.CommandReply)
        if reply.outcome.HasField("accepted"):
            self.acknowledged[command_id] = reply.outcome.accepted.version
        return reply

    async def ask_once(self, subject: str, payload: bytes, timeout: float = 2.0) -> bytes:  # noqa: ASYNC109
        """Ask without asking again."""
        return await self.bus.request(subject, payload, timeout=timeout)

    async def history(self, player: str, after: int = 0, limit: int = 500) -> engine.History:
        """What this player missed."""
        request = engine.HistoryRequest(
            table_id=str(self.table_id), player_id=player, after_version=after, limit=limit, role=_role(player)
        )
        subject = subjects.history(shard_of(self.table_id))
        reply = await self._ask(subject, request.SerializeToString(), engine.HistoryReply)
        assert reply.HasField("history"), engine.Fault.Name(reply.fault)
        return reply.history

    async def view(self, player: str) -> view_pb2.View:
        """The table as this player sees it now."""
        return (await self.history(player, after=1_000_000)).view

    async def open_with_six(self, variant: str = "qingdao-charter", deals: int = 1) -> None:
        """Open a table for six players, as matchmaking does."""
        opened = engine.OpenTable(variant_key=variant, deals=deals, players=PLAYERS, ranked=True)
        accepted(await self.send("service", open_table=opened))

    async def all_ready(self) -> None:
        """Everybody wants the deal to start."""
        for player in PLAYERS:
            accepted(await self.send(player, set_ready=engine.SetReady(ready=True, contribution="ab")))

    async def act(self, player: str, action: action_pb2.Action, command_id: UUID | None = None) -> engine.CommandReply:
        """Act in the deal."""
        return await self.send(player, command_id=command_id, act=engine.Act(action=action))

    async def play(self, actions: int = 10_000) -> int:
        """Act for whoever may, as long as a deal runs, so many times at most; returns how many were accepted."""
        done = 0
        while done < actions:
            turn = await self._whose_turn()
            if turn is None:
                return done
            reply = await self.act(*turn)
            done += reply.outcome.HasField("accepted")
        return done

    async def _whose_turn(self) -> tuple[str, action_pb2.Action] | None:
        while True:
            view = await self.view("nobody")
            if view.public.phase != view_pb2.TABLE_PHASE_PLAYING:
                return None
            if turn := await self._who_can_act(view.public):
                return turn
            # Time may have run out while we looked; a table that stands still must let somebody act.
            assert (await self.view("nobody")).version != view.version, f"nobody can act: {view.public}"

    async def _who_can_act(self, public: view_pb2.PublicView) -> tuple[str, action_pb2.Action] | None:
        seats = [public.turn] if public.HasField("turn") else list(public.window.waiting)
        for seat in seats:
            player = public.seats[seat].player_id
            if action := chosen((await self.view(player)).private):
                return player, action
        return None

    async def is_in(self, phase: view_pb2.TablePhase.ValueType) -> bool:
        """Whether the table is in this phase."""
        return (await self.view("nobody")).public.phase == phase

    async def _ask(self, subject: str, payload: bytes, kind: type[Reply]) -> Reply:
        async with asyncio.timeout(self.patience_s):
            while True:
                with suppress(NoResponders, RequestTimedOut, BusUnavailable):
                    reply = kind.FromString(await self.bus.request(subject, payload, timeout=self.answer_s))
                    if reply.fault not in {engine.FAULT_UNAVAILABLE, engine.FAULT_BUSY}:
                        return reply
                await asyncio.sleep(0.05)


def _role(player: str) -> str:
    return player if player in {"service", "admin"} else "player"


def accepted(reply: engine.CommandReply) -> int:
    """The version of an accepted command."""
    assert reply.outcome.HasField("accepted"), reply
    return reply.outcome.accepted.version


_SILENT = (
    Kind.ACTION_KIND_DECLINE,
    Kind.ACTION_KIND_STAY,
    Kind.ACTION_KIND_SILENT,
    Kind.ACTION_KIND_REFUSE,
    Kind.ACTION_KIND_NO,
    Kind.ACTION_KIND_KEEP,
)


def chosen(private: view_pb2.PrivateView) -> action_pb2.Action | None:
    """What a simple player does: nothing in windows, the first hint on a lead, otherwise the weakest answer or a pass."""
    options = {option.kind: option for option in private.options}
    for kind in _SILENT:
        if kind in options:
            return action_pb2.Action(kind=kind)
    for kind in (Kind.ACTION_KIND_LAY, Kind.ACTION_KIND_RETURN):
        if kind in options and options[kind].hints:
            return action_pb2.Action(kind=kind, cards=options[kind].hints[0])
    for kind in (Kind.ACTION_KIND_BUY, Kind.ACTION_KIND_DISCARD):
        if kind in options and options[kind].hints:
            return action_pb2.Action(kind=kind, ranks=options[kind].hints[0])
    for kind in (Kind.ACTION_KIND_PASS, Kind.ACTION_KIND_COVER):
        if kind in options:
            return action_pb2.Action(kind=kind)
    return None


def forms(updates: list[table_pb2.Update]) -> dict[int, bytes]:
    """What was shown, by version."""
    return {one.version: one.SerializeToString(deterministic=True) for update in updates for one in update.events}


__all__ = [
    "PATIENT",
    "PLAYERS",
    "QUICK_LEASES",
    "Callers",
    "Replica",
    "accepted",
    "chosen",
    "eventually",
    "forms",
    "start",
]
