"""The written language of the game, read: case files and what seats do in them (docs/notation.md).

Law: text to values and nothing else. A statement that is not written right raises `BadNotation` with its line; what
cases mean is in `cases.py`, how cards are written in `cards.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from engine.rules import commands as c
from engine.rules.cards import LETTERS, NotCards, parse
from engine.rules.seats import SEATS


class BadNotation(ValueError):
    """A line that is not written as the notation has it."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class Statement:
    """One line without its comment: its number in the file and its words."""

    line: int
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """The words with single blanks."""
        return " ".join(self.words)


@dataclass(slots=True)
class Case:
    """One case: what it is called, its header statements and its body."""

    name: str
    line: int
    header: list[Statement] = field(default_factory=list)
    body: list[Statement] = field(default_factory=list)
    rules: tuple[str, ...] = ()


def statements(text: str) -> Iterator[Statement]:
    """The statements of a file; `#` starts a comment, blank lines are ignored."""
    for number, line in enumerate(text.splitlines(), 1):
        words = tuple(line.split("#", 1)[0].split())
        if words:
            yield Statement(number, words)


def read_cases(text: str) -> list[Case]:
    """The cases of a file in order; raises `BadNotation` for a statement outside a case."""
    cases: list[Case] = []
    in_body = False
    for statement in statements(text):
        word = statement.words[0]
        if word == "case":
            cases.append(Case(" ".join(statement.words[1:]), statement.line))
            in_body = False
        elif not cases:
            raise BadNotation(statement.line, "a file begins with `case`")
        elif word == "---":
            in_body = True
        else:
            _add(cases[-1], statement, in_body=in_body)
    return cases


def _add(case: Case, statement: Statement, *, in_body: bool) -> None:
    if not in_body and statement.words[0] == "rule":
        case.rules = (*case.rules, *statement.words[1:])
    (case.body if in_body else case.header).append(statement)


def seat_of(word: str, line: int) -> int:
    """A seat 0 to 5."""
    return number_of(word, line, SEATS)


def number_of(word: str, line: int, among: range = range(1 << 16)) -> int:
    """A number within bounds."""
    if not (word.isascii() and word.isdecimal()) or int(word) not in among:
        raise BadNotation(line, f"{word!r} is not a number from {among[0]} to {among[-1]}")
    return int(word)


def check_words(words: tuple[str, ...], bounds: tuple[int, int], line: int) -> None:
    """Raise `BadNotation` unless the first word is followed by as many as it takes, at least and at most."""
    least, most = bounds
    if not least <= len(words) - 1 <= most:
        text = " ".join(words)
        raise BadNotation(line, f"{text!r} has too {'few' if len(words) - 1 < least else 'many'} words")


def action(seat: int, words: tuple[str, ...], line: int) -> c.Command:
    """The command of a seat or of the house on it, as written after the seat's number."""
    if not words:
        raise BadNotation(line, f"seat {seat} without an action")
    verb, *rest = words
    try:
        if verb in _PLAIN and not rest:
            return _PLAIN[verb](seat)
        if verb in _WITH_ARGUMENTS:
            least, most, build = _WITH_ARGUMENTS[verb]
            check_words(words, (least, most), line)
            return build(seat, tuple(rest), line)
        if not rest:
            return c.Lay(seat, parse(verb))
    except NotCards as error:
        raise BadNotation(line, f"{' '.join(words)!r}: {error}") from error
    raise BadNotation(line, f"{' '.join(words)!r} is not an action")


_PLAIN: dict[str, Callable[[int], c.Command]] = {
    "pass": c.Pass,
    "cover": c.Cover,
    "yield": c.Yield,
    "decline": c.Decline,
    "apply": c.Apply,
    "agree": c.Agree,
    "refuse": c.Refuse,
    "revolt": c.Revolt,
    "stay": c.Stay,
    "renounce": c.Renounce,
    "declare": c.Declare,
    "silent": c.Silent,
    "no": c.No,
    "keep": c.Keep,
    "hand_over": c.HandOver,
    "swap": c.Swap,
    "timeout": c.TimeOut,
    "warn": c.Warn,
    "forfeit": c.Forfeit,
    "last": c.JudgeLast,
    "disqualify": c.Disqualify,
}

Arguments = tuple[str, ...]


def _rank(word: str, line: int) -> int:
    if len(word) != 1 or word not in LETTERS:
        raise BadNotation(line, f"{word!r} is not a rank")
    return LETTERS.index(word)


def _discard(seat: int, rest: Arguments, line: int) -> c.Command:
    return c.Discard(seat, tuple(_rank(letter, line) for letter in "".join(rest)))


def _suggest(seat: int, rest: Arguments, line: int) -> c.Command:
    return c.Suggest(seat, seat_of(rest[0], line), parse("".join(rest[1:])))


MANY = 216
"""More words than a statement can need."""

_WITH_ARGUMENTS: dict[str, tuple[int, int, Callable[[int, Arguments, int], c.Command]]] = {
    "burn": (1, MANY, lambda seat, rest, _: c.Burn(seat, parse("".join(rest)))),
    "buy": (1, 1, lambda seat, rest, line: c.Buy(seat, _rank(rest[0], line))),
    "discard": (1, MANY, _discard),
    "return": (1, MANY, lambda seat, rest, _: c.Return(seat, parse("".join(rest)))),
    "consult": (1, 1, lambda seat, rest, line: c.Consult(seat, seat_of(rest[0], line))),
    "suggest": (2, MANY, _suggest),
    "order": (1, MANY, lambda seat, rest, _: c.Order(seat, tuple(parse(one) for one in rest))),
    "ask": (1, 1, lambda seat, rest, line: c.Ask(seat, seat_of(rest[0], line))),
    "dock": (1, 1, lambda seat, rest, line: c.Dock(seat, number_of(rest[0], line))),
}
"""Verb to its least and greatest number of arguments, and the command they make."""
