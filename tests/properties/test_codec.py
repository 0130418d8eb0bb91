"""What is stored is what happened: every event survives its bytes."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.rules.cards import parse
from engine.rules.events import SetLaid
from engine.rules.variant import VARIANTS, Variant
from engine.service import codec
from tests.support.values import values_of

EVENT_IDS = [codec.type_of(event_type) for event_type in codec.EVENT_TYPES]


@pytest.mark.parametrize("event_type", codec.EVENT_TYPES, ids=EVENT_IDS)
@given(random=st.data())
def test_an_event_survives_its_bytes(event_type: type[Any], random: st.DataObject) -> None:
    event = random.draw(values_of(event_type))

    stored = codec.encode(event)

    assert codec.decode(stored.type, stored.schema, stored.payload) == event
    assert codec.encode(event) == stored


@pytest.mark.parametrize("event_type", codec.EVENT_TYPES, ids=EVENT_IDS)
@given(random=st.data())
def test_whatever_bytes_are_read_the_answer_is_an_event_or_unknown(
    event_type: type[Any], random: st.DataObject
) -> None:
    payload = random.draw(st.binary(max_size=40))

    try:
        event = codec.decode(codec.type_of(event_type), codec.SCHEMA, payload)
    except codec.UnknownEvent:
        return

    assert type(event) is event_type


@given(values_of(Variant))
def test_a_variant_survives_its_message(variant: Variant) -> None:
    assert codec.from_message(Variant, codec.to_message(variant)) == variant


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_named_variant_survives_its_message(variant: Variant) -> None:
    assert codec.from_message(Variant, codec.to_message(variant)) == variant


def test_an_event_of_tomorrow_is_unknown() -> None:
    with pytest.raises(codec.UnknownEvent):
        codec.decode("cards_eaten_by_the_dog", codec.SCHEMA, b"")
    with pytest.raises(codec.UnknownEvent):
        codec.decode("set_laid", codec.SCHEMA + 1, b"")


def test_the_stored_bytes_of_a_set_laid_are_these() -> None:
    stored = codec.encode(SetLaid(3, parse("THTS9Hs"), gouji=True, answers=(4, 0)))

    assert (stored.type, stored.schema) == ("set_laid", 1)
    assert stored.payload.hex() == "080312077354485453394818012202" + "0400"


_FINGERPRINT = """
from dataclasses import replace
from engine.rules.variant import Variant
from engine.service.codec import state_hash
print(state_hash((Variant(), frozenset({"a", "b", "c"}), {"x": 1, "y": (2, None, True)})))
"""


def test_the_fingerprint_of_a_state_is_the_same_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _FINGERPRINT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }

    assert len(found) == 1


def test_the_fingerprint_tells_states_apart() -> None:
    assert codec.state_hash(Variant()) != codec.state_hash(replace(Variant(), chaos_after=1))
    assert codec.state_hash(("1",)) != codec.state_hash((1,))
