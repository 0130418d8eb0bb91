"""Every case file of the rule book, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.rules.cases import CaseResult, run_text

CASES = Path(__file__).parent / "cases"
RESULTS = [(path.name, result) for path in sorted(CASES.glob("**/*.gouji")) for result in run_text(path.read_text())]


@pytest.mark.parametrize(("file", "result"), RESULTS, ids=[f"{file}: {result.name}" for file, result in RESULTS])
def test_case(file: str, result: CaseResult) -> None:
    assert not result.failures, "\n".join(f"{file}:{failure.line}: {failure.message}" for failure in result.failures)
