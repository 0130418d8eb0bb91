"""The judge: what was acknowledged is stored, what was shown is stored, and everything else follows from the log.

Law: pure. Each law is one function that yields every breach of it, named by the law; nothing is believed that a process
under test said about itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from engine.store.chain import first_break
from services.ranking.fold import Standing, changed
from tests.chaos.harness.evidence import Counted, Evidence, Fact, Kind, Logged, Mark, Seen, Truth

OVERDUE_MS = 5_000
"""So long after its deadline a table that nobody has moved is stuck."""

SEATS = 6


class Law(StrEnum):
    """What may never happen."""

    LOST_ACTION = "an acknowledged action is not in the log"
    DOUBLED_ACTION = "an action is in the log twice"
    REFUSED_YET_STORED = "a refused action is in the log"
    UNSTORED_SHOWN = "a client saw an event that is not stored in that form"
    WRONG_VIEW = "a client saw a view that the log does not give"
    VERSION_HOLE = "a client's stream has a hole, a double or a step back"
    BROKEN_CHAIN = "the hash chain or the head does not follow"
    ZOMBIE_WROTE = "a replica wrote to a table that another had taken over"
    UNFIT_DEAL = "a finished deal does not verify"
    WRONG_STATE = "a live engine told another state than the log"
    MISSING_FACT = "a fact of the log is not on the bus"
    DOUBLED_FACT = "a fact is on the bus twice"
    REORDERED_FACT = "facts are on the bus in another order"
    FOREIGN_FACT = "a fact on the bus is none of the log"
    UNCOUNTED_RESULT = "a result of the log does not count"
    DOUBLED_RESULT = "a result counts twice"
    REORDERED_RESULT = "results of a table count in another order"
    FOREIGN_RESULT = "what counts is no result of the log"
    WRONG_RATING = "a rating is not the fold of the results"
    WRONG_TELLING = "the facts about a player's ratings have a hole or a double"
    DOUBLED_TIMEOUT = "a deadline was enforced twice"
    STUCK_TABLE = "a table does not advance"
    UNSETTLED = "facts are still on their way long after"
    LEFT_WAITING = "six players wait and are not matched"
    TURNED_AWAY = "a client was turned away for no reason of its own"
    OUTCRY = "a process logged what must never happen"


class Violation(NamedTuple):
    """A breach of a law: where, and what exactly."""

    law: Law
    where: str
    what: str


def violations(evidence: Evidence) -> list[Violation]:
    """Everything that is wrong; nothing when every law held."""
    return [breach for law in _LAWS for breach in law(evidence)]


def _acknowledged(evidence: Evidence) -> Iterator[Violation]:
    """Every acknowledged action is in the log, and ends at the version that the client was told."""
    ends = _ends(evidence)
    for said in evidence.said:
        stored = ends.get((said.table_id, said.command_id), [])
        what = f"{said.command_id} of {said.player}, acknowledged at {said.accepted_at}, stored at {stored}"
        if said.accepted_at is not None and said.accepted_at not in stored:
            yield Violation(Law.LOST_ACTION, str(said.table_id), what)
        if said.accepted_at is None and stored:
            yield Violation(Law.REFUSED_YET_STORED, str(said.table_id), what)


def _ends(evidence: Evidence) -> Mapping[tuple[UUID, UUID], list[int]]:
    ends: dict[tuple[UUID, UUID], list[int]] = defaultdict(list)
    for table_id, truth in evidence.truths.items():
        for row in truth.log:
            if row.ends_command:
                ends[table_id, row.event.command_id].append(row.event.version)
    return ends


def _once(evidence: Evidence) -> Iterator[Violation]:
    """Every action is in the log in one piece."""
    for table_id, truth in evidence.truths.items():
        pieces = Counter(_pieces(truth.log))
        for command_id, count in pieces.items():
            if count > 1:
                yield Violation(Law.DOUBLED_ACTION, str(table_id), f"{command_id} stands there {count} times")


def _pieces(log: Sequence[Logged]) -> Iterator[UUID]:
    """The command of each run of events, where a run ends with the command's last event or with another command."""
    open_command: UUID | None = None
    for event, ends_command in log:
        if event.command_id != open_command:
            yield event.command_id
        open_command = None if ends_command else event.command_id


def _shown(evidence: Evidence) -> Iterator[Violation]:
    """Nobody saw what is not stored, nor in another form than the redacted one of that audience."""
    for seen in evidence.seen:
        truth = evidence.truths.get(seen.table_id)
        forms = truth.forms.get(seen.audience, ()) if truth else ()
        for mark in seen.marks:
            if mark.version > len(forms):
                what = f"{seen.player} saw {mark.kind} {mark.version}, the log ends at {len(forms)}"
            elif mark.kind is Kind.EVENT and forms[mark.version - 1] != mark.digest:
                what = f"{seen.player} as {seen.audience} saw another event {mark.version} than is stored"
            elif _is_wrong_view(mark, truth, seen.audience):
                yield Violation(Law.WRONG_VIEW, str(seen.table_id), f"{seen.player} at version {mark.version}")
                break
            else:
                continue
            yield Violation(Law.UNSTORED_SHOWN, str(seen.table_id), what)
            break


def _is_wrong_view(mark: Mark, truth: Truth | None, audience: str) -> bool:
    due = truth.views.get((audience, mark.version)) if truth else None
    return mark.kind is not Kind.EVENT and bool(mark.digest) and due is not None and due != mark.digest


def _followed(evidence: Evidence) -> Iterator[Violation]:
    """Every stream goes on from its version without hole or double; views and heartbeats tell the version reached."""
    for seen in evidence.seen:
        if problem := _gap(seen):
            yield Violation(Law.VERSION_HOLE, str(seen.table_id), f"{seen.player}: {problem}")


def _gap(seen: Seen) -> str:
    reached, is_first = seen.after, True
    for mark in seen.marks:
        if mark.kind is Kind.SNAPSHOT:
            due = mark.version if is_first and seen.after == 0 else None
        else:
            due = reached + 1 if mark.kind is Kind.EVENT else reached
        if mark.version != due:
            return f"{mark.kind} {mark.version} after version {reached}, asked to go on from {seen.after}"
        reached, is_first = mark.version, False
    return ""


def _chained(evidence: Evidence) -> Iterator[Violation]:
    """Every event follows from the one before, and the head is the last one."""
    for table_id, truth in evidence.truths.items():
        events = [row.event for row in truth.log]
        if (version := first_break(events)) is not None:
            yield Violation(Law.BROKEN_CHAIN, str(table_id), f"broken at version {version}")
        elif not events or (truth.head.version, truth.head.hash) != (events[-1].version, events[-1].hash):
            yield Violation(Law.BROKEN_CHAIN, str(table_id), f"the head stands at {truth.head.version}")


def _led(evidence: Evidence) -> Iterator[Violation]:
    """Once a later leader has written to a table, no earlier one does."""
    for table_id, terms in evidence.terms.items():
        for before, after in pairwise(terms):
            if after.epoch < before.epoch:
                what = (
                    f"version {after.version} in term {after.epoch}, after version {before.version} in {before.epoch}"
                )
                yield Violation(Law.ZOMBIE_WROTE, str(table_id), what)


def _fit(evidence: Evidence) -> Iterator[Violation]:
    """Every finished deal can be verified by anybody."""
    for table_id, truth in evidence.truths.items():
        for problem in truth.unfit:
            yield Violation(Law.UNFIT_DEAL, str(table_id), problem)


def _same_states(evidence: Evidence) -> Iterator[Violation]:
    """What live engines said about their states is what the log folds to."""
    for told in evidence.witnessed:
        truth = evidence.truths.get(told.table_id)
        states = truth.states if truth else ()
        if told.version > len(states) or states[told.version - 1] != told.state:
            yield Violation(Law.WRONG_STATE, str(told.table_id), f"at version {told.version}")


def _published(evidence: Evidence) -> Iterator[Violation]:
    """The facts on the bus are those of the log, each once, in order, byte for byte."""
    for table_id in sorted(evidence.truths.keys() | evidence.bus.keys()):
        truth, pending = evidence.truths.get(table_id), evidence.pending.get(table_id, ())
        told = truth.facts if truth else ()
        there = list(evidence.bus.get(table_id, ()))
        # What is still in the outbox may be on the bus already.
        due = [fact for fact in told if fact.position not in pending or fact in there]
        yield from _compared(str(table_id), due, there)


def _compared(where: str, due: list[Fact], there: list[Fact]) -> Iterator[Violation]:
    for law, facts in (
        (Law.MISSING_FACT, [fact for fact in due if fact not in there]),
        (Law.FOREIGN_FACT, [fact for fact in there if fact not in due]),
        (Law.DOUBLED_FACT, [fact for fact, count in Counter(there).items() if count > 1]),
    ):
        for fact in facts:
            yield Violation(law, where, f"position {fact.position}, {fact.event_id}")
    if [fact for fact in due if fact in there] != [fact for fact in dict.fromkeys(there) if fact in due]:
        yield Violation(Law.REORDERED_FACT, where, f"positions {[fact.position for fact in there]}")


def _counted(evidence: Evidence) -> Iterator[Violation]:
    """Every result of the log that was told counts once, in the order of its table, and nothing else does."""
    results = {Counted(table_id, position) for table_id, truth in evidence.truths.items() for position in truth.results}
    pending = {Counted(table_id, position) for table_id, them in evidence.pending.items() for position in them}
    counts = Counter(evidence.board.journal)
    for law, wrong in (
        (Law.UNCOUNTED_RESULT, results - pending - counts.keys()),
        (Law.FOREIGN_RESULT, counts.keys() - results),
        (Law.DOUBLED_RESULT, {line for line, count in counts.items() if count > 1}),
    ):
        for line in sorted(wrong):
            yield Violation(law, str(line.table_id), f"position {line.position}")
    for table_id, positions in _positions(counts).items():
        if positions != sorted(positions):
            yield Violation(Law.REORDERED_RESULT, str(table_id), f"positions {positions}")


def _positions(counted: Iterable[Counted]) -> Mapping[UUID, list[int]]:
    """The results of each table in the order in which they first counted."""
    found: dict[UUID, list[int]] = defaultdict(list)
    for table_id, position in counted:
        found[table_id].append(position)
    return found


def _rated(evidence: Evidence) -> Iterator[Violation]:
    """The standings are the fold of the log's results in the order in which they took effect, to the last bit."""
    folded: dict[str, Standing] = {}
    for table_id, position in evidence.board.journal:
        truth = evidence.truths.get(table_id)
        if truth and (result := truth.results.get(position)):
            folded.update(changed(folded, result))
    for player in sorted(folded.keys() | evidence.board.standings.keys()):
        stored = evidence.board.standings.get(player)
        if stored != folded.get(player):
            yield Violation(Law.WRONG_RATING, player, f"stands at {stored}, the results give {folded.get(player)}")
        deals = folded[player].deals if player in folded else 0
        told = list(evidence.board.told.get(player, ()))
        if told != list(range(1, deals + 1)):
            yield Violation(Law.WRONG_TELLING, player, f"{deals} deals were rated, told were {told}")


def _timed_out_once(evidence: Evidence) -> Iterator[Violation]:
    """Nobody runs out of time twice in one wait."""
    for table_id, truth in evidence.truths.items():
        times = Counter((timeout.wait, timeout.seat) for timeout in truth.timeouts)
        for (wait, seat), count in times.items():
            if count > 1:
                yield Violation(Law.DOUBLED_TIMEOUT, str(table_id), f"seat {seat}, {count} times in wait {wait}")


def _alive(evidence: Evidence) -> Iterator[Violation]:
    """Every table that was open when all was healed has moved on since, and none has let a deadline pass."""
    for table_id, truth in evidence.truths.items():
        head, healed_at = truth.head, evidence.healed.get(table_id)
        if healed_at is not None and not head.closed and head.version <= healed_at:
            yield Violation(Law.STUCK_TABLE, str(table_id), f"still at version {head.version}")
        elif head.deadline_at_ms is not None and head.deadline_at_ms < evidence.ended_at_ms - OVERDUE_MS:
            late = evidence.ended_at_ms - head.deadline_at_ms
            yield Violation(Law.STUCK_TABLE, str(table_id), f"its deadline passed {late} ms ago")


def _served(evidence: Evidence) -> Iterator[Violation]:
    """No client is turned away for what the house did, no six are left waiting, no process cried out."""
    for away in evidence.turned_away:
        yield Violation(Law.TURNED_AWAY, str(away.table_id), f"{away.player}: {away.reason}")
    if not evidence.settled:
        yield Violation(Law.UNSETTLED, "outboxes and consumers", "")
    if evidence.waiting >= SEATS:
        yield Violation(Law.LEFT_WAITING, "the queue", f"{evidence.waiting} players")
    for line in evidence.outcries:
        yield Violation(Law.OUTCRY, "a log", line)


_LAWS: tuple[Callable[[Evidence], Iterator[Violation]], ...] = (
    _acknowledged,
    _once,
    _shown,
    _followed,
    _chained,
    _led,
    _fit,
    _same_states,
    _published,
    _counted,
    _rated,
    _timed_out_once,
    _alive,
    _served,
)
