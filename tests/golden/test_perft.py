"""The number of legal action sequences to a depth, from fixed positions of every variant (tests/golden/perft)."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import rules
from tests.support.perft import perft, position

FILES = sorted((Path(__file__).parent / "perft").glob("*.gouji"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_perft(file: Path) -> None:
    text = file.read_text()
    expected = [int(number) for number in text.splitlines()[0].removeprefix("# perft ").split()]
    deal = position(text)

    assert [perft(deal, depth) for depth in range(1, len(expected) + 1)] == expected


def test_every_variant_has_a_position() -> None:
    played = {position(file.read_text()).variant.key for file in FILES}

    assert played == set(rules.VARIANTS)
