"""Whether the text of a played deal is true: everything in it is computed again, offline, from the text alone.

Law: believes nothing. The commitment and the shuffle follow from seed and contributions, each event from the command
above it by the rules, the result from the events, and each hash from the one before. What the text says beside that must
be written exactly as `export` writes it. No text makes it fail: what cannot be read is a problem, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import zip_longest
from typing import Any, NamedTuple
from uuid import UUID

from engine import match as table
from engine.match import Event, Match
from engine.rules.dealing import full_deck
from engine.rules.variant import RULE_BOOK
from engine.service import codec, dealer, played
from engine.service.causes import NoCause, cause, decided
from engine.service.export import SEALED, Header, begun, header_lines, rebuild, results
from engine.service.headers import read_header
from engine.service.played import Follows, Mark, NotPlayed, Sealed, Starts
from engine.store.chain import link_digest

__all__ = ["Problem", "rebuild", "verify_notation"]

_LONGEST = 8_000_000
_RULE = "---"


class Problem(NamedTuple):
    """What is wrong in which line, counted from 1."""

    line: int
    message: str


class _Line(NamedTuple):
    number: int
    text: str


class _Wrong(Exception):
    """The line cannot be true, and nothing after it can be judged."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(line, message)


def verify_notation(text: str) -> list[Problem]:
    """Everything that is wrong with the text of a played deal; nothing when it is true."""
    if len(text) > _LONGEST:
        return [Problem(1, "the text is too long to be a played deal")]
    lines = [_Line(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [line for line in lines if line.text and not line.text.startswith("#")]
    try:
        return sorted(set(_problems(lines)))
    except _Wrong as wrong:
        return [wrong.problem]


def _problems(lines: list[_Line]) -> Iterator[Problem]:
    above, below = _halves(lines)
    try:
        header = read_header([line.text for line in above])
    except NotPlayed as error:
        raise _Wrong(_line_of(above, error), str(error)) from error
    yield from _not_as_written(above, list(header_lines(header)))
    chance = list(_chance_problems(header, above))
    yield from chance
    if not chance:
        yield from _Replay(header).problems(below)
        yield from _time_problems(header, above, below)


def _halves(lines: list[_Line]) -> tuple[list[_Line], list[_Line]]:
    for at, line in enumerate(lines):
        if line.text == _RULE:
            return lines[:at], lines[at + 1 :]
    raise _Wrong(_last(lines), "there is no line ---")


def _line_of(lines: list[_Line], error: NotPlayed) -> int:
    """The line that the error quotes, or the last one where something is missing."""
    return next((line.number for line in lines if line.text in str(error)), _last(lines))


def _last(lines: list[_Line]) -> int:
    return lines[-1].number if lines else 1


def _not_as_written(lines: list[_Line], due: list[str]) -> Iterator[Problem]:
    for line, expected in zip_longest(lines, due):
        if line is None:
            yield Problem(_last(lines), f"missing: {expected}")
        elif line.text != expected:
            yield Problem(line.number, "this line does not belong here" if expected is None else f"due: {expected}")
            return


def _chance_problems(header: Header, lines: list[_Line]) -> Iterator[Problem]:
    started = header.started
    if started.rules != RULE_BOOK:
        yield Problem(_number(lines, "rules"), f"only deals of rule book {RULE_BOOK} can be judged")
        return
    seed, given = started.seed or "", started.contributions or ()
    if dealer.commitment(header.table_id, started.deal, seed) != started.commitment:
        yield Problem(_number(lines, "commit"), "the house was not bound to this seed")
    due = dealer.shuffle(header.table_id, started.deal, seed, given, full_deck(started.variant))
    if due.deck != started.deck:
        yield Problem(_number(lines, "deck"), "this deck does not follow from seed and contributions")
    elif due.random_seat != started.random_seat:
        yield Problem(_number(lines, "lead"), "this seat does not follow from seed and contributions")


def _number(lines: list[_Line], statement: str) -> int:
    return next(line.number for line in lines if line.text.split()[0] == statement)


def _time_problems(header: Header, above: list[_Line], below: list[_Line]) -> Iterator[Problem]:
    _, mark = _read_event(below[0])
    if mark.at_ms != header.started_at_ms:
        yield Problem(_number(above, "started"), f"the deal started at {played.time_text(mark.at_ms)}")


class _Replay:
    """Plays the body again. `due`: what still has to follow from the last command."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._match: Match = table.EMPTY
        self._due: tuple[Event, ...] = ()
        self._hash = header.head
        self._version: int | None = None
        self._chain_holds = True

    def problems(self, lines: list[_Line]) -> Iterator[Problem]:
        """What is wrong from the line --- on."""
        events = [line for line in lines if "# @" in line.text]
        if not events or lines[: len(events)] != events:
            raise _Wrong(lines[0].number if lines else 1, "the events do not stand together above the results")
        for line in events:
            yield from self._event_problems(line)
        if self._due:
            yield Problem(events[-1].number, f"{codec.name_of(self._due[0])} must follow")
        due = [*results(self._match), f"hash {self._hash.hex()}"]
        yield from _not_as_written(lines[len(events) :], due)

    def _event_problems(self, line: _Line) -> Iterator[Problem]:
        statement, mark = _read_event(line)
        if self._version is not None and mark.version != self._version + 1:
            yield Problem(line.number, f"version {self._version + 1} is due")
        self._version = mark.version
        if isinstance(statement, Sealed):
            self._link(statement.type, statement.digest, mark)
        else:
            event = self._event(line, statement)
            stored = codec.encode(event)
            self._match = table.evolve(self._match, event)
            self._link(stored.type, sha256(stored.payload).digest(), mark)
        if self._version == mark.version and self._chain_holds and not self._hash.hex().startswith(mark.hash):
            self._chain_holds = False
            yield Problem(line.number, "the hash chain breaks here")

    def _event(self, line: _Line, statement: Any) -> Event:
        if isinstance(statement, Follows):
            return self._following(line, statement)
        if self._due:
            raise _Wrong(line.number, f"{codec.name_of(self._due[0])} is due here")
        first, *self_due = self._made(line, statement)
        self._due = tuple(self_due)
        return first

    def _following(self, line: _Line, statement: Follows) -> Event:
        if not self._due or codec.name_of(self._due[0]) != statement.type:
            raise _Wrong(line.number, "this does not follow from the command above")
        first, *rest = self._due
        self._due = tuple(rest)
        return first

    def _made(self, line: _Line, statement: Any) -> tuple[Event, ...]:
        started = self._header.started
        if isinstance(statement, Starts) != (self._match == table.EMPTY):
            raise _Wrong(line.number, "a deal starts once, before everything else")
        if isinstance(statement, Starts):
            return (started, *begun(started))
        made = decided(self._match, statement)
        if not made:
            raise _Wrong(line.number, "the rules refuse this")
        if _written_otherwise(self._match, made, statement):
            raise _Wrong(line.number, "this is not how the command is written")
        return made

    def _link(self, type_: str, digest: bytes, mark: Mark) -> None:
        table_id: UUID = self._header.table_id
        cause_ = (mark.actor, mark.command_id, mark.trace_id, mark.at_ms)
        self._hash = link_digest(self._hash, table_id, mark.version, type_, codec.SCHEMA, digest, *cause_)


def _read_event(line: _Line) -> tuple[Any, Mark]:
    written, _, comment = line.text.partition("# ")
    try:
        statement, mark = played.read_statement(written.split()), played.read_mark(comment)
    except NotPlayed as error:
        raise _Wrong(line.number, str(error)) from error
    if line.text != f"{played.statement_text(statement)}  {played.mark_text(mark)}":
        raise _Wrong(line.number, "the line is not written as an export writes it")
    if isinstance(statement, Sealed) and statement.type not in SEALED:
        raise _Wrong(line.number, "an event of this kind is never sealed")
    return statement, mark


def _written_otherwise(match: Match, made: tuple[Event, ...], statement: Any) -> bool:
    try:
        command, _ = cause(match, made)
    except NoCause:
        return True
    return bool(command != statement)
