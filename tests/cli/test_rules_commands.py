"""The commands that need no server: cases, variants, verify."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.rules.variant import VARIANTS
from services.cli.main import app

run = CliRunner().invoke

GOOD = """\
case a pair beats a lower pair
hand 0 TT5
hand 1 JJ5
lead 0
---
0 TT
1 JJ
= table 1 JJ
"""
BAD = GOOD.replace("= table 1 JJ", "= table 0 TT")


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    (tmp_path / "good.gouji").write_text(GOOD)
    return tmp_path


def test_cases_that_hold_are_counted(cases: Path) -> None:
    told = run(app, ["cases", str(cases)])

    assert (told.exit_code, told.output) == (0, "1 passed, 0 failed\n")


def test_a_case_that_does_not_hold_is_named_by_file_and_line(cases: Path) -> None:
    (cases / "bad.gouji").write_text(BAD)

    told = run(app, ["cases", str(cases)])

    first, *_, last = told.output.splitlines()
    assert first.startswith(f"{cases / 'bad.gouji'}:8: ")
    assert last == "1 passed, 1 failed"
    assert told.exit_code == 1


def test_a_file_that_cannot_be_read_fails_where_it_stands(cases: Path) -> None:
    (cases / "bad.gouji").write_bytes(b"case \xff\n")

    told = run(app, ["cases", str(cases / "bad.gouji")])

    assert told.output == f"{cases / 'bad.gouji'}:1: not UTF-8\n0 passed, 1 failed\n"


@pytest.mark.parametrize("text", ["nonsense", "case x\nhand 9 TT\n---\n", "case x\n---\n0 flies\n"])
def test_what_is_no_case_fails_and_does_not_break(cases: Path, text: str) -> None:
    (cases / "bad.gouji").write_text(text)

    told = run(app, ["cases", str(cases / "bad.gouji")])

    assert told.exit_code == 1
    assert told.output.startswith(f"{cases / 'bad.gouji'}:")
    assert told.output.endswith("0 passed, 1 failed\n")


def test_cases_are_told_to_programs_as_json(cases: Path) -> None:
    told = run(app, ["cases", "--json", str(cases)])

    assert json.loads(told.stdout)["name"] == "a pair beats a lower pair"


def test_without_cases_the_question_was_wrong(tmp_path: Path) -> None:
    assert run(app, ["cases", str(tmp_path)]).exit_code == 2


def test_every_variant_is_shown_whole() -> None:
    shown = json.loads(run(app, ["variants", "--json"]).output)

    assert set(shown) == set(VARIANTS)
    assert len({frozenset(switches) for switches in shown.values()}) == 1


def test_one_variant_is_shown_alone() -> None:
    assert "shandong" not in run(app, ["variants", "qingdao-charter"]).output


def test_an_unknown_variant_is_answered_with_those_there_are() -> None:
    refused = run(app, ["variants", "chess"])

    assert refused.exit_code == 2
    assert "qingdao-charter" in refused.output


def test_a_text_that_is_no_deal_is_not_true(tmp_path: Path) -> None:
    (tmp_path / "deal.gouji").write_text("case nothing\n---\n")

    told = run(app, ["verify", str(tmp_path / "deal.gouji")])

    assert told.exit_code == 1
    assert told.output.startswith(f"{tmp_path / 'deal.gouji'}:")
    assert told.output.endswith("0 true, 1 false\n")
