"""A played deal as a stranger can check it: the log of one deal in the notation (docs/played-deals.md).

Law: reads stored events and writes text. A deal that is not over is never exported, nor a secret of the deal after it:
an event that belongs to the next deal is written as the digest of its payload.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from engine import match as table
from engine import rules
from engine.match import Event, Match
from engine.match.events import DealStarted, ReadyChanged, SeedCommitted
from engine.rules.cards import faces_text
from engine.rules.events import Debt
from engine.runtime.faults import FailedPrecondition, NotFound
from engine.service import codec, played
from engine.service.causes import cause
from engine.service.played import Follows, Mark, Sealed, Starts, quoted
from engine.store.port import GENESIS, StoredEvent

SEALED = (codec.type_of(SeedCommitted), codec.type_of(ReadyChanged))
"""Events that may carry a secret of the next deal."""

_STARTED = codec.type_of(DealStarted)


class DealIsRunning(FailedPrecondition):
    """The deal is not over yet; nothing about its cards is told."""

    reason = "DEAL_IS_RUNNING"


class Header(NamedTuple):
    """What stands above the line: the deal's start, its table, when it was, and the hash of the event before."""

    table_id: UUID
    started: DealStarted
    started_at_ms: int
    head: bytes


def rebuild(events: Sequence[StoredEvent]) -> Match:
    """The match that these events make, from a table's opening or from the start of a deal."""
    return table.fold(table.EMPTY, map(_event, events))


def export(events: Sequence[StoredEvent], deal: int) -> str:
    """The text of one deal of a table, given all its events. Raises `NotFound` and `DealIsRunning`."""
    starts = [at for at, stored in enumerate(events) if stored.type == _STARTED]
    for begin, end in zip(starts, [*starts[1:], len(events)], strict=True):
        started = _event(events[begin])
        if isinstance(started, DealStarted) and started.deal == deal:
            before = events[begin - 1].hash if begin else GENESIS
            return written(Header(events[begin].table_id, started, events[begin].at_ms, before), events[begin:end])
    raise NotFound("There is no such deal.")


def written(header: Header, events: Sequence[StoredEvent]) -> str:
    """The text of a deal with this header and these events, the first of which is its start."""
    match = rebuild([stored for stored in events if stored.type not in SEALED])
    if match.phase is table.Phase.PLAYING:
        raise DealIsRunning
    lines = (*header_lines(header), "---", *_body(events), *results(match), f"hash {events[-1].hash.hex()}")
    return "\n".join(lines) + "\n"


def _event(stored: StoredEvent) -> Event:
    return codec.decode(stored.type, stored.schema, stored.payload)


def header_lines(header: Header) -> Iterator[str]:
    """The statements above the line."""
    started = header.started
    yield f"gouji {played.FORMAT}"
    yield f"case deal {started.deal} of table {header.table_id}"
    yield f"table {header.table_id}"
    yield f"deal {started.deal}"
    yield f"rules {started.rules}"
    yield f"variant {played.variant_text(started.variant)}"
    yield from _table_lines(started)
    yield from _history_lines(started)
    yield f"started {played.time_text(header.started_at_ms)}"
    yield f"commit {started.commitment}"
    yield f"seed {started.seed}"
    yield from (f"contribution {seat} {hex_}" for seat, hex_ in enumerate(started.contributions or ()) if hex_)
    yield f"deck {faces_text(started.deck or ())}"
    yield f"head {header.head.hex()}"
    yield "from deal"


def _table_lines(started: DealStarted) -> Iterator[str]:
    yield f"seating {started.seating}"
    yield f"ranked {'yes' if started.ranked else 'no'}"
    yield from (f"player {seat} {quoted(player)}" for seat, player in enumerate(started.players) if player)
    yield from (f"barred {quoted(player)}" for player in started.barred)
    yield f"counted {started.counted}"
    yield f"standing {started.even_points} {started.odd_points} {_numbers(started.points)}"


def _history_lines(started: DealStarted) -> Iterator[str]:
    if started.places:
        yield f"places {_numbers(started.places)}"
    yield from (f"debt {_debt(debt)}" for debt in started.debts)
    if started.cutter is not None:
        yield f"cut {started.cutter}"
    if started.changed:
        yield f"changed {_numbers(started.changed)}"
    if started.first_drawer is not None:
        yield f"draws {started.first_drawer}"
    yield f"lead {started.random_seat}"


def _body(events: Sequence[StoredEvent]) -> Iterator[str]:
    for statement, stored in statements(events):
        mark = Mark(
            stored.version,
            stored.at_ms,
            stored.actor,
            stored.command_id,
            stored.trace_id,
            stored.hash.hex()[: played.HASH_DIGITS],
        )
        yield f"{played.statement_text(statement)}  {played.mark_text(mark)}"


def statements(events: Sequence[StoredEvent]) -> Iterator[tuple[object, StoredEvent]]:
    """What is written for each event: the command that made it, that it followed, or that it is sealed."""
    decoded = [_event(stored) for stored in events]
    yield Starts(), events[0]
    match = table.evolve(table.EMPTY, decoded[0])
    at = 1
    for event in begun(decoded[0]):
        yield Follows(codec.name_of(event)), events[at]
        match = table.evolve(match, event)
        at += 1
    while at < len(events):
        if events[at].type in SEALED:
            yield Sealed(events[at].type, sha256(events[at].payload).digest()), events[at]
            at += 1
            continue
        command, size = cause(match, decoded[at:])
        yield command, events[at]
        yield from ((Follows(one.type), one) for one in events[at + 1 : at + size])
        match = table.fold(match, decoded[at : at + size])
        at += size


def begun(started: Event) -> tuple[Event, ...]:
    """What the start of a deal brings with it; nothing where the rules refuse to begin."""
    made = table.begin(started) if isinstance(started, DealStarted) else ()
    return () if isinstance(made, rules.Refused) else made


def results(match: Match) -> Iterator[str]:
    """How the deal ended; nothing for a deal without places."""
    if match.voided or match.deal is None or not match.deal.places:
        return
    even, odd = match.deal.points
    yield f"= places {_numbers(match.places)}"
    yield f"= points {f'even {even}' if even else f'odd {odd}' if odd else 'none'}"
    yield from (f"= owes {_debt(debt)}" for debt in match.debts)
    if not match.debts:
        yield "= owes -"


def _numbers(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


def _debt(debt: Debt) -> str:
    return f"{debt.payer} {debt.payee} {debt.kind} {debt.amount}"
