"""What the cases must show: every rule, every value of every switch, every reason to refuse, every event.

Law: the lists to be covered are read from the rule book, the notation and the engine's own types; kept here are only
the values of switches whose type does not list them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from engine.rules.evolve import FOLDS
from engine.rules.legality import Reason
from engine.rules.notation import Case, read_cases
from engine.rules.position import read_header
from engine.rules.variant import SWITCHES, VARIANTS, Variant, switch_text

ROOT = Path(__file__).parents[2]
CASES = [
    case
    for path in sorted((ROOT / "tests/golden/cases").glob("**/*.gouji"))
    for case in read_cases(path.read_text(encoding="utf-8"))
]

VALUES_OF_OPEN_SWITCHES: dict[str, frozenset[str]] = {
    "chaos_after": frozenset({"1", "2"}),
    "buy": frozenset({"()", "(3)", "(4)", "(3,4)"}),
    "discard": frozenset({"()", "(3)", "(4)", "(3,4)"}),
}
"""The values that the rule book names for switches whose type does not list them; of the rest two values are shown."""


def _rules_in(text: str) -> list[str]:
    return re.findall(r"\*\*(R\d+\.\d+)\*\*", text)


def _rule_book() -> str:
    return (ROOT / "docs/rules.md").read_text(encoding="utf-8")


def _events_of_the_notation() -> list[str]:
    section = (ROOT / "docs/notation.md").read_text(encoding="utf-8").split("## Events")[1].split("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    names = " · ".join(span for line in table for span in re.findall(r"`([^`]+)`", line))
    return [name.strip() for name in names.split("·") if re.fullmatch(r"[a-z_]+", name.strip())]


def _bodies() -> Iterator[tuple[str, ...]]:
    for case in CASES:
        for statement in case.body:
            yield statement.words


NAMED_RULES = frozenset(rule for case in CASES for rule in case.rules)
REFUSALS = frozenset(words[at + 1] for words in _bodies() for at, word in enumerate(words[:-1]) if word == "!")
LOGGED = frozenset(words[2] for words in _bodies() if words[:2] == ("=", "log"))


def _variant_of(case: Case) -> Variant:
    return read_header(case).variant


PLAYED = [*VARIANTS.values(), *map(_variant_of, CASES)]
SHOWN_VALUES = {name: frozenset(switch_text(variant, name) for variant in PLAYED) for name in SWITCHES}


@pytest.mark.parametrize("rule", [*_rules_in(_rule_book()), "R0", "R12", "R13"])
def test_every_rule_has_a_case_that_names_it(rule: str) -> None:
    assert rule in NAMED_RULES


def test_no_case_names_a_rule_that_does_not_exist() -> None:
    chapters = {f"R{chapter}" for chapter in range(15)}
    assert not NAMED_RULES - chapters - set(_rules_in(_rule_book()))


def test_every_case_names_a_rule_and_holds_something() -> None:
    assert not [case.name for case in CASES if not case.rules or not case.body]


def _values_of(name: str) -> frozenset[str] | None:
    kind: Any = get_type_hints(Variant)[name]
    if kind is bool:
        return frozenset({"yes", "no"})
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return frozenset(map(str, kind))
    return VALUES_OF_OPEN_SWITCHES.get(name)


@pytest.mark.parametrize("name", SWITCHES)
def test_every_value_of_every_switch_is_played(name: str) -> None:
    values = _values_of(name)
    if values is None:
        assert len(SHOWN_VALUES[name]) > 1
    else:
        assert not values - SHOWN_VALUES[name]


@pytest.mark.parametrize("key", VARIANTS)
def test_every_named_variant_is_played(key: str) -> None:
    assert any(_variant_of(case).key == key for case in CASES)


@pytest.mark.parametrize("reason", [reason.name for reason in Reason])
def test_every_reason_refuses_something(reason: str) -> None:
    assert reason in REFUSALS


def test_no_case_expects_a_reason_that_does_not_exist() -> None:
    assert not REFUSALS - {reason.name for reason in Reason}


@pytest.mark.parametrize("event", _events_of_the_notation())
def test_every_event_of_the_notation_is_logged(event: str) -> None:
    assert event in LOGGED


def test_the_notation_names_only_events_that_exist() -> None:
    known = {re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower() for kind in FOLDS}
    assert not set(_events_of_the_notation()) - known


def test_case_names_are_told_apart_within_their_file() -> None:
    for path in sorted((ROOT / "tests/golden/cases/more").glob("*.gouji")):
        names = [case.name for case in read_cases(path.read_text(encoding="utf-8"))]
        assert len(names) == len(set(names)), path.name
