"""`gouji verify`: whether a played deal is true, offline.

Law: runs `engine.service.verifier` and prints what is wrong, line by line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli.output import print_json


def verify(
    files: Annotated[list[Path], typer.Argument(help="Exported deals.", exists=True, dir_okay=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each problem.")] = False,
) -> None:
    """Compute shuffle, decisions, points and hash chain again; exit 1 when anything is not as the file says."""
    wrong = [problem for file in files for problem in _problems(file)]
    for file, line, message in wrong:
        if as_json:
            print_json({"file": str(file), "line": line, "message": message})
        else:
            typer.echo(f"{file}:{line}: {message}")
    false = len({file for file, _, _ in wrong})
    typer.echo(f"{len(files) - false} true, {false} false", err=as_json)
    raise typer.Exit(int(bool(wrong)))


def _problems(file: Path) -> list[tuple[Path, int, str]]:
    from engine.service.verifier import verify_notation

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return [(file, 1, "not UTF-8")]
    return [(file, problem.line, problem.message) for problem in verify_notation(text)]
