"""Variants are values: named ones, overrides, and combinations that nobody can play."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.rules.variant import SWITCHES, VARIANTS, ImpossibleVariant, differences, read, resolve, switch_text
from engine.rules.variants_table import markdown


def test_the_page_of_variants_is_what_the_engine_plays() -> None:
    assert (Path("docs") / "variants.md").read_text() == markdown()


@pytest.mark.parametrize("key", VARIANTS)
def test_every_switch_is_read_back_as_it_is_written(key: str) -> None:
    variant = VARIANTS[key]

    written = {name: switch_text(variant, name) for name in SWITCHES}

    assert read(key, written) == variant


@pytest.mark.parametrize("key", VARIANTS)
def test_every_named_variant_can_be_played(key: str) -> None:
    assert resolve(key) == VARIANTS[key]


@pytest.mark.parametrize(
    ("switches", "named"),
    [
        ({"threes_last": "yes", "discard": "(3)"}, ("threes_last", "discard")),
        ({"deck": "{3:1}"}, ("deck",)),
        ({"deck": "{3:18}"}, ("deck",)),
        ({"deck": "{s:5,3:1}"}, ("deck",)),
        ({"discard": "(5)"}, ("discard",)),
        ({"buy": "(5)"}, ("buy",)),
        ({"place_points": "(4,2,0)"}, ("place_points",)),
        ({"chaos_after": "0"}, ("chaos_after",)),
        ({"tribute_order": "point,point"}, ("tribute_order",)),
        ({"tribute_order": "sweep"}, ("tribute_order",)),
        ({"gouji_minimum": "{K:0}"}, ("gouji_minimum",)),
        ({"report_at": "217"}, ("report_at",)),
        ({"match_deals": "0"}, ("match_deals", "match_points")),
    ],
)
def test_an_impossible_combination_is_refused_by_the_names_of_its_switches(
    switches: dict[str, str], named: tuple[str, ...]
) -> None:
    with pytest.raises(ImpossibleVariant) as refused:
        resolve("qingdao-charter", switches)

    assert all(name in str(refused.value) for name in named)


@pytest.mark.parametrize(
    ("key", "switches"),
    [
        ("qingdao", {}),
        ("qingdao-charter", {"trumps": "yes"}),
        ("qingdao-charter", {"tribute": "maybe"}),
        ("qingdao-charter", {"buy": "3"}),
        ("qingdao-charter", {"deck": "{3}"}),
        ("qingdao-charter", {"deck": "{X:3}"}),
        ("qingdao-charter", {"chaos_after": "two"}),
        ("qingdao-charter", {"opening": "sometimes"}),
    ],
)
def test_what_is_no_value_of_a_switch_is_refused(key: str, switches: dict[str, str]) -> None:
    with pytest.raises(ImpossibleVariant):
        read(key, switches)


def test_a_variant_tells_what_is_different_about_it() -> None:
    assert differences(VARIANTS["qingdao-letter"]) == {
        "illegal_play": "lose_turn",
        "report": "on_request",
        "advice": "order",
        "windfall_application": "yes",
    }
