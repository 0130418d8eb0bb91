"""Runs cases: what seats do, and what must hold (docs/notation.md, "Body").

Law: pure; text in, results out. A case that fails goes on to its end, so that one run names every wrong line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from engine.rules import going_out
from engine.rules.cards import NotCards, letters, parse, size
from engine.rules.decide import decide
from engine.rules.drawing import draw
from engine.rules.events import DealEvent, TrickEnded
from engine.rules.evolve import evolve
from engine.rules.legality import Refused
from engine.rules.notation import (
    MANY,
    BadNotation,
    Case,
    Statement,
    action,
    check_words,
    number_of,
    read_cases,
    seat_of,
)
from engine.rules.position import begin, read_header
from engine.rules.seats import MEMBERS
from engine.rules.sets import beats, is_gouji, shape, stands_alone
from engine.rules.state import Deal, conserved, turn, waiting
from engine.rules.variant import DebtKind
from engine.rules.visibility import sees


@dataclass(frozen=True, slots=True)
class Failure:
    """One line that does not hold: what was expected and what was found, with the table drawn."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How one case went."""

    name: str
    line: int
    failures: tuple[Failure, ...]
    rules: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every line held."""
        return not self.failures


def run_text(text: str) -> list[CaseResult]:
    """Run every case of a file. A file that cannot be read gives one failed result."""
    try:
        cases = read_cases(text)
    except BadNotation as error:
        return [CaseResult("(unreadable)", error.line, (Failure(error.line, error.message),))]
    return [run_case(case) for case in cases]


def run_case(case: Case) -> CaseResult:
    """Run one case."""
    try:
        failures = tuple(Run(case).failures())
    except BadNotation as error:
        failures = (Failure(error.line, error.message),)
    return CaseResult(case.name, case.line, failures, case.rules)


def event_name(event: DealEvent) -> str:
    """The event's name in the notation: `set_laid`."""
    return name_of(type(event).__name__)


@cache
def name_of(kind: str) -> str:
    """The name in the notation of a kind of event: `SetLaid` is `set_laid`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()


class Run:
    """One case while it runs: the deal, and the events of the last accepted action."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.variant = read_header(case).variant
        draft = begin(case)
        self.deal: Deal = draft.deal
        self.last: tuple[DealEvent, ...] = tuple(draft.events)

    def failures(self) -> Iterator[Failure]:
        """Every line that does not hold."""
        for statement in self.case.body:
            message = self._run(statement)
            if message is not None:
                yield Failure(statement.line, f"{statement.text}: {message}\n{draw(self.deal)}")

    def _run(self, statement: Statement) -> str | None:
        first = statement.words[0]
        if first == "=":
            return self._assertion(statement)
        if first in _JUDGEMENTS:
            return self._judgement(statement)
        if first == "*":
            return self._everybody(statement)
        return self._action(statement)

    def _judgement(self, statement: Statement) -> str | None:
        least, judge = _JUDGEMENTS[statement.words[0]]
        check_words(statement.words, (least, least), statement.line)
        try:
            return judge(self, statement)
        except NotCards as error:
            raise BadNotation(statement.line, f"{statement.text!r}: {error}") from error

    # Actions

    def _action(self, statement: Statement) -> str | None:
        words, reason = _with_reason(statement)
        command = action(seat_of(words[0], statement.line), words[1:], statement.line)
        outcome = decide(self.deal, command)
        if isinstance(outcome, Refused):
            found = outcome.reason.name
            return None if found == reason else f"expected {reason or 'it to be accepted'}, refused with {found}"
        if reason is not None:
            return f"expected {reason}, but it was accepted"
        return self._accept(outcome)

    def _accept(self, events: tuple[DealEvent, ...]) -> str | None:
        before = conserved(self.deal)
        dealt = self.deal.hands != (0,) * 6
        for event in events:
            self.deal = evolve(self.deal, event)
        self.last = events
        return None if not dealt or conserved(self.deal) == before else "cards were lost or made"

    def _everybody(self, statement: Statement) -> str | None:
        words, line = statement.words[1:], statement.line
        if self.deal.window is not None:
            return self._everybody_asked(words, line)
        accepted = 0
        while (seat := turn(self.deal)) is not None:
            outcome = decide(self.deal, action(seat, words, line))
            if isinstance(outcome, Refused):
                return None if accepted else f"seat {seat} was refused with {outcome.reason.name}"
            phase = self.deal.phase
            if (problem := self._accept(outcome)) is not None:
                return problem
            accepted += 1
            if self.deal.phase is not phase or any(isinstance(event, TrickEnded) for event in outcome):
                return None
        return None if accepted else "nobody is to act"

    def _everybody_asked(self, words: tuple[str, ...], line: int) -> str | None:
        for seat in waiting(self.deal):
            outcome = decide(self.deal, action(seat, words, line))
            if isinstance(outcome, Refused):
                return f"seat {seat} was refused with {outcome.reason.name}"
            if (problem := self._accept(outcome)) is not None:
                return problem
        return None

    # What must hold

    def _assertion(self, statement: Statement) -> str | None:
        words, line = statement.words[1:], statement.line
        if not words or words[0] not in _ASSERTIONS:
            raise BadNotation(line, f"{statement.text!r} asserts nothing known")
        least, most, compared = _ASSERTIONS[words[0]]
        check_words(words, (least, most), line)
        try:
            expected, found = compared(self, words[1:], line)
        except BadNotation:
            raise
        except (IndexError, ValueError) as error:
            raise BadNotation(line, f"{statement.text!r} is not written right: {error}") from error
        return None if expected == found else f"expected {expected}, found {found}"


def _with_reason(statement: Statement) -> tuple[tuple[str, ...], str | None]:
    words = statement.words
    if "!" not in words:
        return words, None
    at = words.index("!")
    if not at or len(words) != at + 2:
        raise BadNotation(statement.line, "`!` stands between an action and one reason")
    return words[:at], words[at + 1]


Words = tuple[str, ...]
Compared = tuple[object, object]


def _seats(words: Words, line: int) -> list[int]:
    return sorted(seat_of(word, line) for word in words if word != "-")


def _turn(run: Run, words: Words, line: int) -> Compared:
    return (None if words[0] == "-" else seat_of(words[0], line)), turn(run.deal)


def _window(run: Run, words: Words, line: int) -> Compared:
    window = run.deal.window
    found = ("no window",) if window is None else (str(window.kind), list(MEMBERS[window.waiting]))
    return (words[0], _seats(words[1:], line)), found


def _table(run: Run, words: Words, line: int) -> Compared:
    trick = run.deal.trick
    found = "-" if trick.owner is None else (trick.owner, letters(trick.cards))
    return ("-" if words[0] == "-" else (seat_of(words[0], line), letters(parse("".join(words[1:]))))), found


def _may(run: Run, words: Words, line: int) -> Compared:
    refused = words[0] == "not"
    rest = words[1:] if refused else words
    outcome = decide(run.deal, action(seat_of(rest[0], line), rest[1:], line))
    found = f"refused with {outcome.reason.name}" if isinstance(outcome, Refused) else "accepted"
    if refused:
        return "refused", "refused" if isinstance(outcome, Refused) else found
    return "accepted", found


def _yes(run: Run, words: Words, value: object) -> Compared:
    del run
    return words[0], "yes" if value else "no"


def _burner(run: Run, words: Words, line: int) -> Compared:
    found = None if run.deal.burn is None else run.deal.burn.burner
    return (None if words[0] == "-" else seat_of(words[0], line)), found


def _hand(run: Run, words: Words, line: int) -> Compared:
    expected = "" if words[1] == "-" else letters(parse("".join(words[1:])))
    return expected, letters(run.deal.hands[seat_of(words[0], line)])


def _count(run: Run, words: Words, line: int) -> Compared:
    return number_of(words[1], line), size(run.deal.hands[seat_of(words[0], line)])


def _place(run: Run, words: Words, line: int) -> Compared:
    return number_of(words[1], line), run.deal.standing.places[seat_of(words[0], line)]


def _sees(run: Run, words: Words, line: int) -> Compared:
    return words[2], sees(run.deal, seat_of(words[0], line), seat_of(words[1], line))


def _points(run: Run, words: Words, line: int) -> Compared:
    expected = (0, 0)
    if words[0] != "none":
        number = number_of(words[1], line)
        expected = (number, 0) if words[0] == "even" else (0, number)
    return ("over", expected), (run.deal.phase.value, run.deal.points)


def _owes(run: Run, words: Words, line: int) -> Compared:
    debts = {debt[:3]: debt.amount for debt in run.deal.debts_left}
    if words[0] == "-":
        return {}, debts
    key = seat_of(words[0], line), seat_of(words[1], line), DebtKind(words[2])
    return number_of(words[3], line), debts.get(key, 0)


def _log(run: Run, words: Words, _: int) -> Compared:
    names = [event_name(event) for event in run.last]
    return words[0], words[0] if words[0] in names else names


_ASSERTIONS: dict[str, tuple[int, int, Callable[[Run, Words, int], Compared]]] = {
    "turn": (1, 1, _turn),
    "window": (1, 7, _window),
    "table": (1, MANY, _table),
    "may": (2, MANY, _may),
    "gouji": (1, 1, lambda run, words, _: _yes(run, words, run.deal.trick.gouji)),
    "burner": (1, 1, _burner),
    "headless": (1, 6, lambda run, words, line: (_seats(words, line), list(going_out.headless_seats(run.deal)))),
    "chaos": (1, 1, lambda run, words, _: _yes(run, words, run.deal.standing.chaos)),
    "opened": (1, 6, lambda run, words, line: (_seats(words, line), list(MEMBERS[run.deal.points_of.opened]))),
    "hand": (2, MANY, _hand),
    "count": (2, 2, _count),
    "sees": (3, 3, _sees),
    "place": (2, 2, _place),
    "places": (6, 6, lambda run, words, line: (tuple(seat_of(word, line) for word in words), run.deal.places)),
    "points": (1, 2, _points),
    "owes": (1, 4, _owes),
    "phase": (1, 1, lambda run, words, _: (words[0], run.deal.phase.value)),
    "log": (1, 1, _log),
}
"""Assertion to the least and greatest number of words after it, and what it compares."""


# Judgements that need no deal


def _judge_beats(run: Run, statement: Statement) -> str | None:
    _, table, new, expected = statement.words
    below, above = shape(parse(table)), shape(parse(new))
    found = below is not None and above is not None and beats(above, below, run.variant)
    return _compare(expected, "yes" if found else "no")


def _judge_gouji(run: Run, statement: Statement) -> str | None:
    _, cards, expected = statement.words
    one = shape(parse(cards))
    return _compare(expected, "yes" if one is not None and is_gouji(one, run.variant) else "no")


def _judge_set(run: Run, statement: Statement) -> str | None:
    _, cards, expected = statement.words
    one = shape(parse(cards))
    if one is None:
        return _compare(expected, "NOT_A_SET")
    alone = not run.variant.threes_last or stands_alone(one)
    return _compare(expected, "ok" if alone else "THREES_STAND_ALONE")


def _compare(expected: str, found: str) -> str | None:
    return None if expected == found else f"expected {expected}, found {found}"


_JUDGEMENTS: dict[str, tuple[int, Callable[[Run, Statement], str | None]]] = {
    "beats": (3, _judge_beats),
    "gouji": (2, _judge_gouji),
    "set": (2, _judge_set),
}
"""Judgement to the number of words after it, and how it is judged."""
