"""What the SQL of the sources may not say."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from engine.store import sql
from tests.architecture.sources import sources

HIDES_A_RACE = re.compile(r"on conflict[^;]*?do nothing", re.IGNORECASE)
GLOBAL_ORDER = re.compile(
    r"\b(nextval|currval|bigserial|serial|generated (always|by default) as identity|pg_notify"
    r"|pg_(try_)?advisory\w*|language plpgsql|create trigger|txid_\w+|pg_current_xact_id|xmin)\b|^\s*(notify|listen) ",
    re.IGNORECASE | re.MULTILINE,
)

KNOWN_CONFLICTS = {
    "engine/runtime/gate.py": "makes a source's position 0; who holds its row moves it",
    "engine/store/sql.py": "opens streams; those that are there already are told back as refused",
    "services/matchmaking/seating.py": "a player who sits there already sits there",
    "services/matchmaking/store.py": "a queue that is there already is there",
    "services/ranking/journal.py": "newcomers get their row; all are locked and read afterwards",
}
"""Where a row that is there already is no lost race, and why."""

KNOWN_ORDER = {"services/ranking/migrations/versions/0001_ratings.py": "numbers the journal, read under a lock alone"}
"""Where rows are numbered over all, and why nobody can skip one."""

DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def test_a_conflict_is_an_error_but_where_it_is_known_to_be_none() -> None:
    assert dict(Counter(name for name, _ in _said(HIDES_A_RACE))) == dict.fromkeys(KNOWN_CONFLICTS, 1)


def test_nothing_is_read_by_a_global_order_and_nothing_is_done_behind_the_statements() -> None:
    assert {name for name, _ in _said(GLOBAL_ORDER)} == KNOWN_ORDER.keys()


def test_every_statement_about_a_table_names_its_shard() -> None:
    of_all_shards = {"OPEN_STREAMS", "STREAMS_BETWEEN", "UNSETTLED"}
    nameless = {
        name
        for name, text in vars(sql).items()
        if name.isupper() and not name.startswith("_") and re.search(r"engine\.(stream|event|outbox)\b", text)
        if not re.search(r"\bshard\b", text)
    }

    assert nameless == of_all_shards


def _said(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Texts of the sources that are no docstrings, one after the other, where the pattern is found."""
    for source in sources():
        docstrings = {
            ast.get_docstring(node, clean=False) for node in ast.walk(source.tree) if isinstance(node, DOCUMENTED)
        }
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docstrings:
                yield from ((source.name, found.group()) for found in pattern.finditer(node.value))
