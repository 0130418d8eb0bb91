"""`gouji cases`: run rule cases that are written in the notation.

Law: finds files, runs them through `engine.rules.cases` and prints each line that does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from services.cli.output import fail, print_json

SUFFIX = ".gouji"


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one case; `failures` as `file:line: message`."""

    file: str
    line: int
    name: str
    failures: tuple[str, ...]


def cases(
    paths: Annotated[list[Path], typer.Argument(help="Files, or folders with *.gouji files.", exists=True)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each case.")] = False,
) -> None:
    """Run every case; exit 1 when one fails, 2 when there is none."""
    reports = [report for file in _files(paths) for report in _run(file)]
    if not reports:
        fail("no cases found", code=2)
    for report in reports:
        _show(report, as_json=as_json)
    failed = sum(bool(report.failures) for report in reports)
    typer.echo(f"{len(reports) - failed} passed, {failed} failed", err=as_json)
    raise typer.Exit(int(failed > 0))


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]


def _run(file: Path) -> Iterator[Report]:
    from engine.rules.cases import run_text

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        yield Report(str(file), 1, file.stem, (f"{file}:1: not UTF-8",))
        return
    for result in run_text(text):
        failures = tuple(f"{file}:{failure.line}: {failure.message}" for failure in result.failures)
        yield Report(str(file), result.line, result.name, failures)


def _show(report: Report, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(report))
        return
    for failure in report.failures:
        typer.echo(failure)
