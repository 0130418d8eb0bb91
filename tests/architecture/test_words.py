import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import Source, sources

EMPTY_WORDS = {"util", "utils", "helper", "helpers", "manager", "managers", "info", "misc"}
THIS = Path(__file__)
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b|raise NotImplemented|(mark|pytest)\.(skip|xfail)")
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def test_every_module_opens_with_its_law() -> None:
    silent = [s.name for s in sources() if s.text.strip() and not ast.get_docstring(s.tree)]

    assert not silent


def test_no_name_is_an_empty_word() -> None:
    empty = [
        f"{source.name}: {name}"
        for source in sources()
        for name in _defined(source)
        if name == "data" or EMPTY_WORDS & {word.lower() for word in WORDS.findall(name)}
    ]

    assert not empty


def test_nothing_is_left_unfinished() -> None:
    everything = sources("engine", "services", "deploy", "tests")
    found = [source.name for source in everything if source.path != THIS and UNFINISHED.search(source.text)]

    assert not found


def _defined(source: Source) -> Iterator[str]:
    yield source.path.stem
    for node in ast.walk(source.tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
