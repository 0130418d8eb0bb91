"""A deal put together from the header of a case (docs/notation.md, "Header statements").

Law: builds a starting state and begins the phase that the header names; from there on the rules run as in any deal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.rules import course
from engine.rules.cards import NO_CARDS, Cards, NotCards, parse, parse_faces
from engine.rules.draft import Draft
from engine.rules.events import Debt, Phase
from engine.rules.notation import MANY, BadNotation, Case, check_words, number_of, seat_of
from engine.rules.seats import SEATS, has, mask_of, opposite
from engine.rules.state import Deal, Points, Preparation, Setup, Six, SixHands, Standing, Trick
from engine.rules.variant import DebtKind, ImpossibleVariant, Opening, Variant, read

DEFAULT_HAND = "345"


@dataclass(slots=True)
class Header:
    """What the header statements of a case say."""

    variant: Variant = field(default_factory=Variant)
    hands: dict[int, Cards] = field(default_factory=dict)
    lead: int = 0
    out: dict[int, int] = field(default_factory=dict)
    failed: dict[int, int] = field(default_factory=dict)
    revolted: int | None = None
    passed: tuple[int, ...] = ()
    opened: tuple[int, ...] = ()
    cutter: int | None = None
    changed: tuple[int, ...] = ()
    debts: tuple[Debt, ...] = ()
    places: tuple[int, ...] = ()
    phase: Phase | None = None
    deck: tuple[int, ...] = ()
    first_drawer: int | None = None


def read_header(case: Case) -> Header:
    """The header's values; raises `BadNotation`."""
    header = Header()
    for statement in case.header:
        if statement.words[0] not in _READERS:
            raise BadNotation(statement.line, f"{statement.words[0]!r} is not a header statement")
        least, most, reader = _READERS[statement.words[0]]
        check_words(statement.words, (least, most), statement.line)
        try:
            reader(header, statement.words[1:], statement.line)
        except BadNotation:
            raise
        except ValueError as error:
            raise BadNotation(statement.line, str(error)) from error
    return header


def _variant(header: Header, words: tuple[str, ...], line: int) -> None:
    switches: dict[str, str] = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals:
            raise BadNotation(line, f"{word!r} is not switch=value")
        switches[name] = value
    try:
        header.variant = read(words[0], switches)
    except ImpossibleVariant as error:
        raise BadNotation(line, str(error)) from error


def _hand(header: Header, words: tuple[str, ...], line: int) -> None:
    text = "".join(words[1:])
    try:
        header.hands[seat_of(words[0], line)] = NO_CARDS if text == "-" else parse(text)
    except NotCards as error:
        raise BadNotation(line, str(error)) from error


def _lead(header: Header, words: tuple[str, ...], line: int) -> None:
    header.lead = seat_of(words[0], line)


def _out(header: Header, words: tuple[str, ...], line: int) -> None:
    header.out[seat_of(words[0], line)] = number_of(words[1], line, range(1, 7))


def _failed(header: Header, words: tuple[str, ...], line: int) -> None:
    header.failed[seat_of(words[0], line)] = number_of(words[1], line, range(1, 7))


def _revolted(header: Header, words: tuple[str, ...], line: int) -> None:
    header.revolted = seat_of(words[0], line)


def _seats(words: tuple[str, ...], line: int) -> tuple[int, ...]:
    return tuple(seat_of(word, line) for word in words)


def _passed(header: Header, words: tuple[str, ...], line: int) -> None:
    header.passed += _seats(words, line)


def _opened(header: Header, words: tuple[str, ...], line: int) -> None:
    header.opened += _seats(words, line)


def _cut(header: Header, words: tuple[str, ...], line: int) -> None:
    header.cutter = seat_of(words[0], line)


def _changed(header: Header, words: tuple[str, ...], line: int) -> None:
    header.changed += _seats(words, line)


def _debt(header: Header, words: tuple[str, ...], line: int) -> None:
    payer, payee, kind, amount = words
    debt = Debt(seat_of(payer, line), seat_of(payee, line), DebtKind(kind), number_of(amount, line))
    same = sum(old.amount for old in header.debts if old[:3] == debt[:3])
    others = tuple(old for old in header.debts if old[:3] != debt[:3])
    header.debts = (*others, debt._replace(amount=debt.amount + same))


def _places(header: Header, words: tuple[str, ...], line: int) -> None:
    places = _seats(words, line)
    if sorted(places) != list(SEATS):
        raise BadNotation(line, "places names each seat once")
    header.places = places


def _from(header: Header, words: tuple[str, ...], _: int) -> None:
    header.phase = Phase(words[0])


def _deck(header: Header, words: tuple[str, ...], _: int) -> None:
    header.deck = parse_faces("".join(words))


def _draws(header: Header, words: tuple[str, ...], line: int) -> None:
    header.first_drawer = seat_of(words[0], line)


def _rule(_: Header, __: tuple[str, ...], ___: int) -> None:
    """Read with the case."""


_READERS: dict[str, tuple[int, int, Callable[[Header, tuple[str, ...], int], None]]] = {
    "rule": (1, MANY, _rule),
    "variant": (1, MANY, _variant),
    "hand": (2, MANY, _hand),
    "lead": (1, 1, _lead),
    "out": (2, 2, _out),
    "failed": (2, 2, _failed),
    "revolted": (1, 1, _revolted),
    "passed": (1, 6, _passed),
    "opened": (1, 6, _opened),
    "cut": (1, 1, _cut),
    "changed": (1, 6, _changed),
    "debt": (4, 4, _debt),
    "places": (6, 6, _places),
    "from": (1, 1, _from),
    "deck": (1, MANY, _deck),
    "draws": (1, 1, _draws),
}
"""Statement to the least and greatest number of words after it, and its reader."""


def begin(case: Case) -> Draft:
    """The deal of a case at its start, with the events that the start itself brought."""
    header = read_header(case)
    phase = header.phase or (Phase.TRIBUTE if header.debts else Phase.PLAY)
    _check(case, header, phase)
    if phase is Phase.DEAL:
        draft = Draft(Deal(_setup(header)))
        course.begin(draft)
    else:
        draft = Draft(_arrange(header))
        course.enter(draft, phase)
    return draft


def _check(case: Case, header: Header, phase: Phase) -> None:
    if phase is Phase.DEAL and (not header.deck or len(header.deck) % 6):
        raise BadNotation(case.line, "`from deal` needs a deck that six seats can share")
    gone = {*header.out, *header.failed, header.revolted}
    empty = [seat for seat, hand in header.hands.items() if not hand and seat not in gone]
    if empty:
        raise BadNotation(case.line, f"seat {empty[0]} has no cards but is neither out nor revolted nor failed")


def _setup(header: Header) -> Setup:
    return Setup(
        variant=header.variant,
        deck=header.deck,
        places=header.places,
        debts=header.debts,
        cutter=header.cutter,
        changed=header.changed,
        random_seat=header.lead,
        first_drawer=header.first_drawer,
    )


def _arrange(header: Header) -> Deal:
    hands = _hands(header)
    revolter_opens = header.variant.threes_last and header.variant.opening is not Opening.OFF
    opened = (*header.opened, *((header.revolted,) if header.revolted is not None and revolter_opens else ()))
    return Deal(
        setup=_setup(header),
        hands=hands,
        cutter=header.cutter,
        leader=header.lead,
        trick=Trick(passed=mask_of(header.passed)),
        standing=_standing(header),
        points_of=Points(opened=mask_of(opened)),
        preparation=Preparation(dealt=hands, dues=header.debts),
    )


def _hands(header: Header) -> SixHands:
    plain = parse(DEFAULT_HAND)
    defaults = defaultdict(lambda: plain, dict.fromkeys(header.out, NO_CARDS))
    return tuple(header.hands.get(seat, defaults[seat]) for seat in SEATS)  # type: ignore[return-value]


def _standing(header: Header) -> Standing:
    places = [0] * 6
    for seat, place in (*header.out.items(), *header.failed.items()):
        places[seat] = place
    gone = tuple(sorted(header.out, key=header.out.__getitem__))
    parting = [0] * 6
    if header.revolted is not None:
        places[header.revolted] = _revolters_place(header)
        parting[opposite(header.revolted)] = 3
    left = mask_of((*header.out, *header.failed, *(() if header.revolted is None else (header.revolted,))))
    return Standing(
        active=0b111111 & ~left,
        places=_six(places),
        gone=gone,
        failed=mask_of(header.failed),
        revolter=header.revolted,
        parting_gouji=_six(parting),
    )


def _revolters_place(header: Header) -> int:
    """Fourth, or third when his teammates are first and second already (R7.3)."""
    first_two = mask_of(seat for seat, place in header.out.items() if place <= 2)
    mates = [seat for seat in SEATS if has(first_two, seat) and seat % 2 == (header.revolted or 0) % 2]
    return 3 if len(mates) == 2 else 4


def _six(values: list[int]) -> Six:
    return tuple(values)  # type: ignore[return-value]
