"""The page of promises names tests that exist."""

import re

from tests.architecture.sources import ROOT, sources

PAGE = (ROOT / "docs" / "promises.md").read_text()
NAMED = re.compile(r"`(test_\w+)`")
MODULE = re.compile(r"`((?:engine|services|deploy)\.[\w.]+)`")


def test_every_test_that_a_promise_names_exists() -> None:
    there = {function.name for source in sources("tests") for function in source.functions()}

    assert set(NAMED.findall(PAGE)) - there == set()


def test_every_promise_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| what we owe")]

    assert len(rows) > 40
    assert [row for row in rows if not NAMED.search(row)] == []


def test_every_module_that_a_promise_names_exists() -> None:
    there = {source.module for source in sources()}
    packages = {module.rpartition(".")[0] for module in there}

    assert set(MODULE.findall(PAGE)) - there - packages == set()
