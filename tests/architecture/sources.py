"""The sources as syntax trees, for the tests of this folder."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ROOMS = ("engine", "services", "deploy")
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One file."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def module(self) -> str:
        return self.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def imported(self) -> Iterator[str]:
        """Every module that is imported, also inside functions."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.name}: relative import"
                yield node.module or ""

    @cached_property
    def code_lines(self) -> frozenset[int]:
        """The numbers of the lines that hold code: no comment, no blank line, no docstring."""
        lines = {
            line
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline)
            if token.type not in SILENT
            for line in range(token.start[0], token.end[0] + 1)
        }
        return frozenset(lines - {line for node in ast.walk(self.tree) for line in _docstring_lines(node)})

    def code_length(self, function: Function) -> int:
        return sum(function.lineno <= line <= (function.end_lineno or 0) for line in self.code_lines)


def _docstring_lines(node: ast.AST) -> range:
    match node:
        case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())) as docstring, *_]:
                    return range(docstring.lineno, (docstring.end_lineno or 0) + 1)
    return range(0)


def sources(*folders: str) -> list[Source]:
    """All sources of these folders, of every room without any."""
    return [Source(path) for folder in folders or ROOMS for path in sorted((ROOT / folder).rglob("*.py"))]
