"""A live table: its commands one after another, each stored, then answered, then shown.

Law: the log is the table, and what is held in memory is a fold of it that is thrown away on any doubt. Nothing is
applied, answered or shown before the store has it. A fault of the rules sets this table aside and no other.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID, uuid5

import structlog

from engine import match, rules
from engine.match import Command, Event, MatchReason
from engine.runtime.clock import Clock
from engine.runtime.faults import Busy, Fault, NotFound, Unavailable
from engine.service import codec
from engine.service.dealer import Dealer
from engine.service.faults import NotLeading, Quarantined, fault_of
from engine.service.ledger import Ledger
from engine.service.measures import Measures
from engine.service.orders import HOUSE, Accepted, Look, Order, Refused, Verdict
from engine.service.shards import Term
from engine.service.standing import Standing, Step, advanced, fold
from engine.service.waits import Spans, deadline_after, full_time, is_houses_turn, was_down
from engine.store.port import (
    Append,
    Deadline,
    EventStore,
    NotTheLeader,
    OutboxEntry,
    StoreUnavailable,
    StreamHead,
    StreamNotFound,
    WrongVersion,
)

_log = structlog.get_logger(__name__)

_ATTEMPTS = 4
_ANSWERS = 64
_RECENT = 32


class Show(Protocol):
    """Shows stored steps to whoever watches."""

    async def __call__(self, table_id: UUID, steps: Sequence[Step], deadline: Deadline | None) -> None:
        """Send each audience its form of these steps; trouble with the bus is no trouble here."""
        ...


@dataclass(frozen=True, slots=True)
class House:
    """What every table of this replica works with.

    `mailbox`: how many commands may wait at a table.
    """

    store: EventStore
    ledger: Ledger
    clock: Clock
    dealer: Dealer
    spans: Spans
    measures: Measures
    show: Show
    arm: Callable[[UUID, Deadline | None], None]
    nudge_outbox: Callable[[], None]
    facts_of: Callable[[UUID, Sequence[Step]], tuple[OutboxEntry, ...]]
    mailbox: int = 64


class _Held(NamedTuple):
    """What is known of the table, all of it stored."""

    standing: Standing
    deadline: Deadline | None


class Table:
    """One table in one term of leadership."""

    def __init__(self, table_id: UUID, term: Term, house: House) -> None:
        self.id = table_id
        self.term = term
        self.fault = ""
        self._house = house
        self._turn = asyncio.Lock()
        self._queued = 0
        self._held: _Held | None = None
        self._answers: OrderedDict[UUID, Verdict] = OrderedDict()
        self._recent: deque[Step] = deque(maxlen=_RECENT)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way or waiting."""
        return self._queued == 0

    @property
    def is_spent(self) -> bool:
        """Whether there is nothing to keep in memory: nothing held, no such table, or a match that is over."""
        return not self.fault and (self._held is None or match.is_over(self._held.standing.match))

    async def judge(self, order: Order) -> Verdict:
        """Answer a command; the same id gets the same answer. Raises a `Fault` when it was not judged."""
        if isinstance(order.command, match.CloseTable):
            # The one way out that an operator has: it needs nothing of the rules that broke.
            self.fault = ""
        async with self._in_turn():
            known = self._answers.get(order.command_id)
            if known is not None:
                return known
            verdict = await self._judge(order)
            self._remember(order.command_id, verdict)
            await self._act_for_the_house()
            return verdict

    async def look(self) -> Look:
        """Where the table stands, and its newest steps. Raises a `Fault` when it cannot be told."""
        if self._held is None:
            async with self._in_turn():
                return self._look(await self._hold())
        self._check()
        return self._look(self._held)

    async def release(self) -> None:
        """Take the table up again from its log, after somebody has looked. Raises `Quarantined` when that breaks."""
        self.fault = ""
        async with self._in_turn():
            await self._hold()

    async def pass_deadline(self, deadline: Deadline) -> None:
        """Do what this deadline is there for, unless the table has moved on. Raises a `Fault` when it was not done."""
        async with self._in_turn():
            held = await self._hold()
            if held.deadline != deadline:
                self._house.arm(self.id, held.deadline)
                return
            if not is_houses_turn(held.standing.match):
                await self._time_out(held, deadline)
            await self._act_for_the_house()

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        """One at a time, in the order in which they came, and not too many at once."""
        if self._queued >= self._house.mailbox:
            raise Busy
        self._queued += 1
        try:
            async with self._turn:
                self._check()
                async with self._on_doubt_forgotten():
                    yield
        finally:
            self._queued -= 1

    @asynccontextmanager
    async def _on_doubt_forgotten(self) -> AsyncIterator[None]:
        """Whatever breaks leaves nothing in memory that might not be in the store."""
        try:
            yield
        except (NotLeading, asyncio.CancelledError):
            self._forget()
            raise
        except Fault:
            raise
        except (StoreUnavailable, WrongVersion) as error:
            self._forget()
            raise Unavailable from error
        except NotTheLeader as error:
            self._forget()
            raise NotLeading from error
        except Exception as error:
            self._set_aside(error)
            raise Quarantined from error

    def _check(self) -> None:
        if self.fault:
            raise Quarantined
        if not self.term.lasts():
            raise NotLeading

    def _look(self, held: _Held) -> Look:
        if held.standing.version == 0:
            raise NotFound
        return Look(held.standing, held.deadline, tuple(self._recent))

    async def _hold(self) -> _Held:
        """Take up the table from the log, claimed for this term first so that no older leader can add to it."""
        if self._held is None:
            self._house.measures.folds.inc()
            head = await self._claim()
            standing = await fold(self._house.store, self.id) if head else Standing()
            if head and head.version != standing.version:
                if head.closed and standing.version == 0:
                    raise NotFound  # its day has left the database
                raise StoreUnavailable("the log does not reach its head")
            self._held = _Held(standing, head.deadline if head else None)
            self._house.arm(self.id, self._held.deadline)
        return self._held

    async def _claim(self) -> StreamHead | None:
        try:
            return await self._house.store.claim(self.id, self.term.epoch)
        except StreamNotFound:
            return None

    async def _judge(self, order: Order) -> Verdict:
        """Decide and store; when somebody else wrote in between, take the table up again and decide again."""
        for _ in range(_ATTEMPTS):
            held = await self._hold()
            if held.standing.version == 0 and not isinstance(order.command, match.OpenTable):
                raise NotFound
            decided = match.decide(held.standing.match, order.command)
            if isinstance(decided, match.Refused | rules.Refused):
                return await self._refuse(held, order.command_id, decided.reason)
            try:
                return await self._commit(held, order.command_id, order.actor, decided, order.trace_id)
            except WrongVersion:
                self._forget()
        raise NotLeading

    async def _refuse(self, held: _Held, command_id: UUID, reason: MatchReason | rules.Reason) -> Verdict:
        """No, unless it is a repeated command that was accepted once."""
        answered = await self._house.store.find_command(self.id, command_id)
        if answered is not None:
            return Accepted(answered.version)
        self._house.measures.refusals.labels(reason.name.lower()).inc()
        return Refused(reason, held.standing.version)

    async def _commit(
        self, held: _Held, command_id: UUID, actor: str, events: Sequence[Event], trace_id: str = ""
    ) -> Accepted:
        """Store, then apply, then show."""
        at_ms = self._house.clock.now_ms()
        steps = _steps(held.standing, events, at_ms)
        after = _Held(steps[-1].standing, self._deadline(held, steps[-1].standing, at_ms))
        facts = self._house.facts_of(self.id, steps)
        appended = await self._house.ledger.append(
            Append(
                table_id=self.id,
                expected_version=held.standing.version,
                epoch=self.term.epoch,
                command_id=command_id,
                actor=actor,
                at_ms=at_ms,
                events=tuple(codec.encode(event) for event in events),
                trace_id=trace_id,
                outbox=facts,
                deadline=after.deadline,
                closes=match.is_over(after.standing.match),
            ),
            self.term.lasts,
        )
        if appended.version == after.standing.version:
            await self._apply(after, steps, has_facts=bool(facts))
        elif appended.version > after.standing.version:
            self._forget()
        return Accepted(appended.version)

    async def _apply(self, after: _Held, steps: Sequence[Step], *, has_facts: bool) -> None:
        """The steps are stored: the table is this now, and everybody may see it."""
        self._held = after
        self._recent.extend(steps)
        self._house.arm(self.id, after.deadline)
        if has_facts:
            self._house.nudge_outbox()
        try:
            if self.term.lasts():
                await self._house.show(self.id, steps, after.deadline)
        except Exception as error:  # noqa: BLE001 - what is stored is accepted, even if it cannot be shown
            self._set_aside(error)

    def _deadline(self, held: _Held, after: Standing, at_ms: int) -> Deadline | None:
        before = held.standing.match
        spans = self._house.spans
        return deadline_after(before, after.match, held.deadline, version=after.version, at_ms=at_ms, spans=spans)

    async def _act_for_the_house(self) -> None:
        """Commit to a seed and deal when it is time; if it fails, the deadline that is due now tries again."""
        try:
            while (held := self._held) is not None and (command := self._house_command(held)) is not None:
                await self._do(held, f"house {self.term.epoch} {held.standing.version}", (command,))
        except (StoreUnavailable, NotTheLeader, WrongVersion, NotLeading) as error:
            _log.warning("house did not act", table=str(self.id), cause=type(error).__name__)
            self._forget()
        except Exception as error:  # noqa: BLE001 - what came before it is stored, and its answer is owed
            self._set_aside(error)

    def _house_command(self, held: _Held) -> Command | None:
        table = held.standing.match
        if self.fault:
            return None
        if match.wants_commitment(table):
            return self._house.dealer.commit(self.id, table)
        return self._house.dealer.deal(self.id, table) if match.wants_deal(table) else None

    async def _time_out(self, held: _Held, deadline: Deadline) -> None:
        """Enforce the deadline; or, if the house was down when it passed, give the full time again, for all to see."""
        house, table = self._house, held.standing.match
        now = house.clock.now_ms()
        is_late = was_down(table, deadline, now, self.term.steady_since_ms(), house.spans)
        commands = (match.ExtendDeadline(full_time(table, now, house.spans)),) if is_late else match.due(table)
        await self._do(held, f"deadline {deadline.since_version} {deadline.at_ms}", commands)
        house.measures.deadlines.labels("extended" if is_late else "enforced").inc()

    async def _do(self, held: _Held, name: str, commands: Sequence[Command]) -> None:
        """The house's commands, stored together under one id that follows from their cause."""
        await self._commit(held, uuid5(self.id, name), HOUSE, _decided(held.standing.match, commands))

    def _remember(self, command_id: UUID, verdict: Verdict) -> None:
        self._answers[command_id] = verdict
        if len(self._answers) > _ANSWERS:
            self._answers.popitem(last=False)

    def _forget(self) -> None:
        self._held = None
        self._answers.clear()
        self._recent.clear()
        self._house.measures.doubts.inc()

    def _set_aside(self, error: Exception) -> None:
        """The rules broke: keep everyone away from this table until somebody has looked. A card is never logged."""
        self.fault = fault_of(error)
        self._held = None
        self._recent.clear()
        _log.error("table quarantined", table=str(self.id), fault=self.fault)


def _steps(standing: Standing, events: Sequence[Event], at_ms: int) -> list[Step]:
    steps: list[Step] = []
    for event in events:
        standing = advanced(standing, event)
        steps.append(Step(event, at_ms, standing))
    return steps


def _decided(table: match.Match, commands: Sequence[Command]) -> tuple[Event, ...]:
    """The events of several commands, one after the other; one that is refused has lost its object meanwhile."""
    events: list[Event] = []
    for command in commands:
        decided = match.decide(table, command)
        if not isinstance(decided, match.Refused | rules.Refused):
            events.extend(decided)
            table = match.fold(table, decided)
    return tuple(events)
