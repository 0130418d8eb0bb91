"""Live updates, histories and facts as bytes.

Law: puts together what `engine.service.wire` has made fit for an audience; shows nothing by itself. Facts are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from gouji.engine.v1 import engine_pb2, facts_pb2
from gouji.game.v1 import event_pb2
from gouji.table.v1 import table_pb2

from engine.match import Match
from engine.match.events import MatchFinished, TableClosed, TableOpened
from engine.rules.events import DealEnded, DealVoided, Debt
from engine.runtime import subjects
from engine.service import wire
from engine.service.codec import to_message
from engine.service.facts import FactEvent
from engine.service.standing import Step
from engine.store.port import OutboxEntry

PUBLIC = "public"


def audience_name(seat: int | None) -> str:
    """`seat0` … `seat5`, or `public`."""
    return PUBLIC if seat is None else f"seat{seat}"


def live(table_id: UUID, steps: Sequence[Step], audience: int | None, public: bytes) -> bytes:
    """A live update for this audience: its form of these steps, and its view after the last."""
    last = steps[-1].standing
    message = engine_pb2.LiveUpdate()
    message.update.events.extend(versioned(step, audience) for step in steps)
    wire.fill_view(message.update.view, table_id, last.match, audience, version=last.version, public=public)
    return message.SerializeToString()


def versioned(step: Step, audience: int | None) -> table_pb2.VersionedEvent:
    """An event at its version in the form for this audience."""
    form = wire.form(step.event, audience)
    return table_pb2.VersionedEvent(version=step.standing.version, at_ms=step.at_ms, event=form)


def facts(table_id: UUID, steps: Sequence[Step]) -> tuple[OutboxEntry, ...]:
    """The facts among these steps, as they wait to be published."""
    return tuple(_entry(table_id, step, step.event) for step in steps if isinstance(step.event, FactEvent))


def _entry(table_id: UUID, step: Step, event: FactEvent) -> OutboxEntry:
    standing = step.standing
    event_id = f"{table_id}:{standing.version}"
    fact = facts_pb2.Fact(event_id=event_id, table_id=str(table_id), position=standing.facts, at_ms=step.at_ms)
    _fill(fact, event, standing.match)
    return OutboxEntry(standing.facts, subjects.fact(table_id), event_id, fact.SerializeToString(deterministic=True))


def _fill(fact: facts_pb2.Fact, event: FactEvent, after: Match) -> None:
    match event:
        case TableOpened():
            fact.table_opened.CopyFrom(_table_opened(event))
        case DealEnded() | DealVoided():
            fact.deal_finished.CopyFrom(_deal_finished(event, after))
        case MatchFinished():
            fact.match_finished.CopyFrom(_match_finished(event, after))
        case TableClosed(reason):
            fact.table_closed.CopyFrom(facts_pb2.TableClosedFact(reason=reason))


def _table_opened(event: TableOpened) -> facts_pb2.TableOpenedFact:
    return facts_pb2.TableOpenedFact(
        variant_key=event.variant.key, ranked=event.ranked, players=event.players or ("",) * 6
    )


def _deal_finished(event: DealEnded | DealVoided, after: Match) -> facts_pb2.DealFinishedFact:
    fact = facts_pb2.DealFinishedFact(
        deal=after.deal_number, variant_key=after.variant.key, ranked=after.ranked, players=after.players
    )
    if isinstance(event, DealEnded):
        fact.places.extend(event.places)
        fact.even_points, fact.odd_points = event.even_points, event.odd_points
        fact.debts.extend(_debt(debt) for debt in event.debts)
    return fact


def _debt(debt: Debt) -> event_pb2.Debt:
    message: event_pb2.Debt = to_message(debt)
    return message


def _match_finished(event: MatchFinished, after: Match) -> facts_pb2.MatchFinishedFact:
    return facts_pb2.MatchFinishedFact(
        variant_key=after.variant.key,
        ranked=after.ranked,
        players=after.players,
        deals=event.deals,
        points=event.points,
        even_points=event.even_points,
        odd_points=event.odd_points,
    )
