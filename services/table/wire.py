"""Between the messages of the bus, those of the clients and plain values of this service.

Law: the only file beside the servicer and the engine's client that knows the protos. An update is parsed once per
audience and serialised once; every stream that shares the form gets the same bytes behind its own field tag.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from google.protobuf.message import DecodeError
from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import action_pb2, view_pb2
from gouji.table.v1 import peers_pb2, table_pb2

from engine.runtime.faults import FailedPrecondition
from services.table import shapes

Connected = AbstractSet[str]
"""The players who hold a stream of their own seat, on any replica."""

PUBLIC = "public"


class Unreadable(Exception):
    """These bytes are no message of the expected kind, or one that breaks its promise: drop it."""


@dataclass(frozen=True, slots=True)
class Sight:
    """The table as one audience sees it at a version."""

    _view: view_pb2.View

    @property
    def version(self) -> int:
        """The version of the last event that this view contains."""
        return self._view.version

    @property
    def players(self) -> tuple[str, ...]:
        """Who sits, by seat; empty where nobody does."""
        seated = {seat.seat: seat.player_id for seat in self._view.public.seats}
        return tuple(seated.get(seat, "") for seat in range(shapes.SEATS))

    def view(self, connected: Connected) -> view_pb2.View:
        """The view with the connected flags of now."""
        for seat in self._view.public.seats:
            seat.connected = seat.player_id in connected
        return self._view

    def refreshed(self, connected: Connected) -> bytes:
        """An update without events: only the view has changed."""
        return table_pb2.Update(view=self.view(connected)).SerializeToString()

    def snapshot(self, connected: Connected) -> bytes:
        """A snapshot for a client that has seen nothing yet."""
        return table_pb2.Snapshot(view=self.view(connected)).SerializeToString()


@dataclass(frozen=True, slots=True)
class Passage:
    """Events from `first` to `last` without a hole, and the sight after the last of them if it is known."""

    first: int
    last: int
    sight: Sight | None
    _events: table_pb2.Update

    def body(self, connected: Connected) -> bytes:
        """The serialised update with the connected flags of now."""
        if self.sight is not None:
            self._events.view.CopyFrom(self.sight.view(connected))
        return self._events.SerializeToString()


@dataclass(frozen=True, slots=True)
class Page:
    """What the engine's history answers: whose forms these are, some events, and the newest sight.

    `complete` is false when more events follow the passage.
    """

    audience: str
    passage: Passage | None
    sight: Sight
    complete: bool


@dataclass(frozen=True, slots=True)
class Envelope:
    """The field numbers of one kind of stream response, so that ready bytes are put in without being copied apart."""

    updates: int
    heartbeats: int
    snapshots: int

    def update(self, body: bytes) -> bytes:
        """A response that holds this serialised update."""
        return _field(self.updates, body)

    def snapshot(self, body: bytes) -> bytes:
        """A response that holds this serialised snapshot."""
        return _field(self.snapshots, body)

    def heartbeat(self, version: int, at_ms: int) -> bytes:
        """A response that says how far the stream is."""
        return _field(self.heartbeats, table_pb2.Heartbeat(version=version, at_ms=at_ms).SerializeToString())


PLAY = Envelope(updates=2, heartbeats=3, snapshots=4)
WATCH = Envelope(updates=1, heartbeats=2, snapshots=3)


def _field(number: int, body: bytes) -> bytes:
    """Encode a length-delimited field (protobuf encoding, wire type 2)."""
    return bytes((number << 3 | 2, *_varint(len(body)))) + body


def _varint(value: int) -> Iterator[int]:
    while value > 0x7F:
        yield value & 0x7F | 0x80
        value >>= 7
    yield value


def passage_of(payload: bytes) -> Passage:
    """Read a live update. Raises `Unreadable`, also when it has no events, a hole between them or no view."""
    try:
        update = engine.LiveUpdate.FromString(payload).update
    except DecodeError as garbage:
        raise Unreadable from garbage
    passage = _passage(update, Sight(update.view))
    if passage is None or passage.last != update.view.version:
        raise Unreadable
    return passage


def page_of(history: engine.History) -> Page:
    """Read a page of history. Raises `Unreadable` for one with a hole."""
    sight = Sight(history.view)
    update = table_pb2.Update(events=history.events)
    passage = _passage(update, sight if history.complete else None)
    return Page(history.audience, passage, sight, history.complete)


def _passage(update: table_pb2.Update, sight: Sight | None) -> Passage | None:
    if not update.events:
        return None
    first, last = update.events[0].version, update.events[-1].version
    if [event.version for event in update.events] != list(range(first, last + 1)):
        raise Unreadable
    return Passage(first, last, sight, update)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A Play stream of a player has begun somewhere, at this time of that replica's clock."""

    player_id: str
    stream_id: str
    at_ms: int

    def is_after(self, other: Arrival) -> bool:
        """Whether this is the newer one; of the same moment, by id."""
        return (self.at_ms, self.stream_id) > (other.at_ms, other.stream_id)


@dataclass(frozen=True, slots=True)
class Notice:
    """What a replica tells its peers about a table: who is connected there, and who has just arrived."""

    replica: str
    players: frozenset[str]
    arrival: Arrival | None = None


def notice_bytes(notice: Notice) -> bytes:
    """Serialise a notice."""
    message = peers_pb2.PeerNotice(replica=notice.replica, players=sorted(notice.players))
    if notice.arrival is not None:
        message.arrival.player_id = notice.arrival.player_id
        message.arrival.stream_id = notice.arrival.stream_id
        message.arrival.at_ms = notice.arrival.at_ms
    return message.SerializeToString()


def notice_of(payload: bytes) -> Notice:
    """Read a peer's notice. Raises `Unreadable`."""
    try:
        message = peers_pb2.PeerNotice.FromString(payload)
    except DecodeError as garbage:
        raise Unreadable from garbage
    arrival = message.arrival
    arrived = Arrival(arrival.player_id, arrival.stream_id, arrival.at_ms) if message.HasField("arrival") else None
    return Notice(message.replica, frozenset(message.players), arrived)


def checked_action(action: action_pb2.Action) -> action_pb2.Action:
    """Pass an action on when each of its fields is within bounds. Raises `MalformedRequest`."""
    shapes.below("action.kind", action.kind - 1, len(action_pb2.ActionKind.values()) - 1)
    shapes.matching("action.cards", action.cards, shapes.CARDS)
    shapes.matching("action.ranks", action.ranks, shapes.RANKS)
    shapes.below("action.seat", action.seat, shapes.SEATS)
    shapes.all_matching("action.sets", action.sets, shapes.CARDS, shapes.MOST_SETS)
    return action


def open_table(request: table_pb2.OpenTableRequest) -> engine.OpenTable:
    """Read what table is wanted. Raises `MalformedRequest`."""
    return engine.OpenTable(
        variant_key=shapes.matching("variant_key", request.variant_key, shapes.VARIANT_KEY),
        switches=shapes.all_matching("switches", request.switches, shapes.SWITCH, shapes.MOST_SWITCHES),
        deals=shapes.below("deals", request.deals, shapes.MOST_DEALS),
        seating=request.seating,
    )


def opened(table_id: UUID, outcome: table_pb2.Outcome) -> table_pb2.OpenTableResponse:
    """Write the answer to an opening. Raises `FailedPrecondition` when the table was refused."""
    return table_pb2.OpenTableResponse(table_id=str(table_id), version=opened_at(outcome))


def opened_at(outcome: table_pb2.Outcome) -> int:
    """The version at which a table was opened. Raises `FailedPrecondition` when it was refused."""
    if outcome.WhichOneof("outcome") == "refused":
        name = action_pb2.Reason.Name(outcome.refused.reason).removeprefix("REASON_")
        raise FailedPrecondition("The table was not opened.", reason=name)
    return outcome.accepted.version


def take_seat(request: table_pb2.TakeSeatRequest) -> engine.TakeSeat:
    """Read a wish for a seat. Raises `MalformedRequest`."""
    return engine.TakeSeat(seat=shapes.below("seat", request.seat, shapes.SEATS))


def set_ready(request: table_pb2.SetReadyRequest | table_pb2.Move) -> engine.SetReady:
    """Read a readiness. Raises `MalformedRequest`."""
    contribution = shapes.matching("contribution", request.contribution, shapes.CONTRIBUTION)
    return engine.SetReady(ready=request.ready, contribution=contribution)


def act(request: table_pb2.ActRequest | table_pb2.Move) -> engine.Act:
    """Read an action. Raises `MalformedRequest`."""
    return engine.Act(seen_version=request.seen_version, action=checked_action(request.action))


def moved(move: table_pb2.Move) -> engine.CommandRequest:
    """Read what a Play stream's player does: get ready, or act. Raises `MalformedRequest`."""
    if move.ready:
        return engine.CommandRequest(set_ready=set_ready(move))
    return engine.CommandRequest(act=act(move))


def listing(request: table_pb2.ListTablesRequest, most: int) -> engine.ListRequest:
    """Read which tables are wanted; the page token is the last table's id. Raises `MalformedRequest`."""
    before = str(shapes.uuid("page_token", request.page_token)) if request.page_token else ""
    return engine.ListRequest(limit=shapes.below("page_size", request.page_size, most + 1) or most, before=before)


def listed(reply: engine.ListReply) -> table_pb2.ListTablesResponse:
    """Write a page of tables. What follows it is only known by asking, so that the last page is an empty one."""
    following = reply.tables[-1].table_id if reply.tables else ""
    return table_pb2.ListTablesResponse(tables=reply.tables, next_page_token=following)


class Addressed(Protocol):
    """A request that carries the two ids of every command."""

    table_id: str
    command_id: str


@dataclass(frozen=True, slots=True)
class Ids:
    """The table and the command, checked."""

    table: UUID
    command: UUID


def ids(request: Addressed) -> Ids:
    """Read the two ids. Raises `MalformedRequest`."""
    return Ids(shapes.uuid("table_id", request.table_id), shapes.uuid("command_id", request.command_id))


def opening_ids(command_id: str, player_id: str, now_ms: int) -> Ids:
    """Read an opening's command id, which names its table too. Raises `MalformedRequest`."""
    command = shapes.uuid("command_id", command_id)
    return Ids(shapes.opened_table_id(player_id, command, now_ms), command)
