"""Between matchmaking's values and its messages on the wire, and from the engine's facts to who sits where.

Law: shapes only; what a message means is decided elsewhere. What cannot be read raises `MalformedRequest` when a client
sent it, `Poison` when a fact carries it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from google.protobuf.message import DecodeError
from gouji.engine.v1 import facts_pb2 as engine_facts
from gouji.matchmaking.v1 import facts_pb2, matchmaking_pb2

from engine.runtime import subjects
from engine.runtime.bus import FactMessage
from engine.runtime.faults import MalformedRequest
from engine.runtime.intake import Arrival, Poison
from engine.runtime.outbox_relay import OutgoingFact
from engine.runtime.uuid7 import made_at_ms
from services.matchmaking.matching import Match
from services.matchmaking.seating import Freed, Irrelevant, Occupied, Opened, SeatingFact
from services.matchmaking.tickets import State, Ticket

_STATES: Final = {
    State.WAITING: matchmaking_pb2.TICKET_STATE_WAITING,
    State.PROPOSED: matchmaking_pb2.TICKET_STATE_PROPOSED,
    State.MATCHED: matchmaking_pb2.TICKET_STATE_MATCHED,
    State.CANCELLED: matchmaking_pb2.TICKET_STATE_CANCELLED,
    State.EXPIRED: matchmaking_pb2.TICKET_STATE_EXPIRED,
}


def ticket_to_wire(ticket: Ticket) -> matchmaking_pb2.Ticket:
    """Write a ticket for its player."""
    return matchmaking_pb2.Ticket(
        ticket_id=str(ticket.ticket_id),
        state=_STATES[ticket.state],
        variant_key=ticket.queue.variant_key,
        deals=ticket.queue.deals,
        created_at_ms=ticket.created_at_ms,
        table_id=str(ticket.table_id or ""),
        seat=ticket.seat or 0,
    )


def id_from_wire(field: str, text: str) -> UUID:
    """Read an id in its canonical form. Raises `MalformedRequest`."""
    try:
        uuid = UUID(text)
    except ValueError as malformed:
        raise MalformedRequest(f"{field} is not a UUID.") from malformed
    if str(uuid) != text.lower():
        raise MalformedRequest(f"{field} is not a UUID in its canonical form.")
    return uuid


def announce(match: Match, opening_s: float) -> OutgoingFact:
    """Write the fact that tells the engine of a match, which it may open within so many seconds."""
    at_ms = made_at_ms(match.table_id)
    fact = facts_pb2.MatchFound(
        table_id=str(match.table_id),
        variant_key=match.queue.variant_key,
        deals=match.queue.deals,
        players=match.players,
        at_ms=at_ms,
        open_before_ms=at_ms + round(opening_s * 1000),
    )
    return _outgoing(match.table_id, 1, str(match.table_id), fact)


def withdraw(table_id: UUID) -> OutgoingFact:
    """Write the fact that tells the engine to close a match's table: it was opened too late."""
    fact = facts_pb2.MatchFound(table_id=str(table_id), withdrawn=True)
    return _outgoing(table_id, 2, f"{table_id}:withdrawn", fact)


def _outgoing(table_id: UUID, position: int, event_id: str, fact: facts_pb2.MatchFound) -> OutgoingFact:
    return OutgoingFact(subjects.match(table_id), position, event_id, fact.SerializeToString(deterministic=True))


def seating_from_fact(message: FactMessage) -> Arrival[SeatingFact]:
    """Read what a fact of the engine says about who sits where."""
    try:
        fact = engine_facts.Fact.FromString(message.payload)
        table_id = UUID(fact.table_id)
    except (DecodeError, ValueError) as unreadable:
        raise Poison("unreadable fact") from unreadable
    if subjects.fact(table_id) != message.subject or fact.position < 1:
        raise Poison("a fact that is not its subject's")
    return Arrival(fact.position, _seating(table_id, fact))


def _seating(table_id: UUID, fact: engine_facts.Fact) -> SeatingFact:
    match fact.WhichOneof("fact"):
        case "table_opened" if fact.table_opened.ranked:
            return Opened(table_id, _seated(fact.table_opened.players))
        case "deal_finished" if fact.deal_finished.ranked:
            return Occupied(table_id, _seated(fact.deal_finished.players))
        case "match_finished" | "table_closed":
            return Freed(table_id)
        case _:
            return Irrelevant()


def _seated(players: Iterable[str]) -> list[str]:
    return sorted({player_id for player_id in players if player_id})
