"""Every event is known in every place that must know it; a missing one is named."""

from typing import Any, get_args

from gouji.game.v1.event_pb2 import Event as EventMessage

from engine.match.events import MatchEvent
from engine.rules.events import DealEvent
from engine.service import codec
from tests.architecture.sources import ROOT

MATCH_EVENTS: tuple[type[Any], ...] = get_args(MatchEvent)
DEAL_EVENTS: tuple[type[Any], ...] = get_args(DealEvent)
FACTS: dict[str, Any] = {field.name: field for field in EventMessage.DESCRIPTOR.oneofs_by_name["fact"].fields}


def unmentioned(events: tuple[type[Any], ...], *files: str) -> set[str]:
    text = "\n".join((ROOT / file).read_text() for file in files)
    return {event.__name__ for event in events if event.__name__ not in text}


def test_every_event_of_a_deal_is_decided() -> None:
    deciders = [path.relative_to(ROOT).as_posix() for path in (ROOT / "engine/rules").glob("*.py")]
    silent = {"__init__.py", "events.py", "evolve.py", "visibility.py"}

    assert not unmentioned(DEAL_EVENTS, *(file for file in deciders if file.rsplit("/")[-1] not in silent))


def test_every_event_of_a_deal_is_folded() -> None:
    assert not unmentioned(DEAL_EVENTS, "engine/rules/evolve.py")


def test_every_event_of_a_table_is_decided_and_folded() -> None:
    assert not unmentioned(MATCH_EVENTS, "engine/match/decide.py")
    assert not unmentioned(MATCH_EVENTS, "engine/match/evolve.py")


def test_every_event_with_something_to_hide_is_redacted() -> None:
    hiding = tuple(event for event in DEAL_EVENTS if hides_cards(event))
    secret = tuple(event for event in MATCH_EVENTS if {"deck", "seed", "contribution"} & optional_fields(event))

    assert not unmentioned(hiding, "engine/rules/visibility.py")
    assert not unmentioned(secret, "engine/match/visibility.py")


def optional_fields(event: type[Any]) -> set[str]:
    return {field.name for field in FACTS[codec.type_of(event)].message_type.fields if field.has_presence}


def hides_cards(event: type[Any]) -> bool:
    return bool({"cards", "sets"} & optional_fields(event)) or "Hands" in str(event.__annotations__.values())


def test_every_event_has_a_plan_for_its_bytes() -> None:
    assert set(codec.TYPES.values()) == {*MATCH_EVENTS, *DEAL_EVENTS}
    assert {name for name, event in codec.TYPES.items() if codec.type_of(event) != name} == set()


def test_every_event_travels_as_a_message_of_its_name() -> None:
    assert {name: field.message_type.name for name, field in FACTS.items()} == {
        name: event.__name__ for name, event in codec.TYPES.items()
    }


def test_events_of_a_table_and_of_a_deal_have_their_own_numbers() -> None:
    numbers = {FACTS[codec.type_of(event)].number for event in MATCH_EVENTS}
    deal_numbers = {FACTS[codec.type_of(event)].number for event in DEAL_EVENTS}

    assert max(numbers) < 100 < min(deal_numbers)


def test_every_field_of_an_event_has_the_same_name_in_its_message() -> None:
    different = {
        name: (fields, sent)
        for name, event in codec.TYPES.items()
        if (fields := list(event.__annotations__)) != (sent := [one.name for one in FACTS[name].message_type.fields])
    }

    assert not different
