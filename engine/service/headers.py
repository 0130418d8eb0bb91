"""The header of a played deal, read back into the event that started it.

Law: text to values only; `export` writes what is read here, `verifier` judges it. Every statement is known, stands as
often as it may, and holds numbers that exist; everything else is `NotPlayed`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

from engine.match import NOBODY, SEATS, Faces, Seating
from engine.match.events import DealStarted
from engine.rules.cards import parse_faces
from engine.rules.events import Debt
from engine.rules.variant import DebtKind
from engine.service import played
from engine.service.export import Header
from engine.service.played import NotPlayed, read_amount, read_seat, unquoted

Value = TypeVar("Value")
Words = list[str]

_ONCE = (
    *("gouji", "case", "table", "deal", "rules", "variant", "seating", "ranked", "counted", "standing"),
    *("lead", "started", "commit", "seed", "deck", "head", "from"),
)
_AT_MOST_ONCE = ("places", "cut", "changed", "draws")
_MANY = ("player", "barred", "debt", "contribution")


class _Statements(NamedTuple):
    """The words behind each statement's name, as often as it stands."""

    found: dict[str, list[Words]]

    def one(self, name: str, read: Callable[[Words], Value]) -> Value:
        """The value of a statement that stands once."""
        return _read(name, self.found[name][0], read)

    def maybe(self, name: str, read: Callable[[Words], Value]) -> Value | None:
        """The value of a statement that may be missing."""
        return self.one(name, read) if self.found[name] else None

    def many(self, name: str, read: Callable[[Words], Value]) -> tuple[Value, ...]:
        """The values of a statement that stands any number of times."""
        return tuple(_read(name, words, read) for words in self.found[name])


def read_header(lines: Sequence[str]) -> Header:
    """The header that these lines are; raises `NotPlayed` with the line in its message."""
    statements = _statements(lines)
    return Header(
        table_id=statements.one("table", lambda words: UUID(_only(words))),
        started=_started(statements),
        started_at_ms=statements.one("started", lambda words: played.read_time(_only(words))),
        head=statements.one("head", lambda words: played.read_digest(_only(words))),
    )


def _statements(lines: Sequence[str]) -> _Statements:
    found: dict[str, list[Words]] = defaultdict(list)
    for line in lines:
        name, *words = line.split()
        if name not in {*_ONCE, *_AT_MOST_ONCE, *_MANY} or (name not in _MANY and found[name]):
            raise NotPlayed(f"this statement does not belong here: {line}")
        found[name].append(words)
    if missing := [name for name in _ONCE if not found[name]]:
        raise NotPlayed(f"the statement {missing[0]} is missing")
    return _Statements(found)


def _started(statements: _Statements) -> DealStarted:
    even, odd, *points = statements.one("standing", _standing)
    return DealStarted(
        deal=statements.one("deal", _number),
        counted=statements.one("counted", _number),
        rules=statements.one("rules", _only),
        variant=statements.one("variant", played.read_variant),
        seating=statements.one("seating", lambda words: Seating(_only(words))),
        ranked=statements.one("ranked", _yes),
        players=_by_seat(statements.many("player", _named)),
        barred=statements.many("barred", lambda words: unquoted(_only(words))),
        points=tuple(points),
        even_points=even,
        odd_points=odd,
        places=statements.maybe("places", _places) or (),
        debts=statements.many("debt", _debt),
        cutter=statements.maybe("cut", _seat),
        changed=statements.maybe("changed", _seats) or (),
        first_drawer=statements.maybe("draws", _seat),
        random_seat=statements.one("lead", _seat),
        commitment=statements.one("commit", _only),
        seed=statements.one("seed", _only),
        contributions=_by_seat(statements.many("contribution", _named)),
        deck=statements.one("deck", lambda words: Faces(parse_faces(_only(words)))),
    )


def _read(name: str, words: Words, read: Callable[[Words], Value]) -> Value:
    try:
        return read(words)
    except (ValueError, TypeError, OverflowError) as error:
        raise NotPlayed(f"this statement cannot be read: {' '.join((name, *words))}") from error


def _only(words: Words) -> str:
    (word,) = words
    return word


def _number(words: Words) -> int:
    return read_amount(_only(words))


def _seat(words: Words) -> int:
    return read_seat(_only(words))


def _seats(words: Words) -> tuple[int, ...]:
    return tuple(map(read_seat, words))


def _places(words: Words) -> tuple[int, ...]:
    seats = _seats(words)
    if sorted(seats) != list(SEATS):
        raise NotPlayed("six places have six seats")
    return seats


def _standing(words: Words) -> tuple[int, ...]:
    numbers = tuple(map(int, words))
    if len(numbers) != 2 + len(SEATS):
        raise NotPlayed("a standing is two teams and six seats")
    return numbers


def _yes(words: Words) -> bool:
    return ("no", "yes").index(_only(words)) == 1


def _named(words: Words) -> tuple[int, str]:
    seat, name = words
    return read_seat(seat), unquoted(name)


def _by_seat(named: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    given = dict(named)
    return tuple(given.get(seat, NOBODY) for seat in SEATS)


def _debt(words: Words) -> Debt:
    payer, payee, kind, amount = words
    return Debt(read_seat(payer), read_seat(payee), DebtKind(kind), read_amount(amount))
