"""What every command prints with: one console for people, plain JSON for programs.

Law: results go to standard output, everything about them to standard error.
"""

from __future__ import annotations

import json
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape

OUT = Console(highlight=False, soft_wrap=True)
ERR = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: object) -> None:
    """One JSON value on one line, keys sorted."""
    typer.echo(json.dumps(value, ensure_ascii=False, sort_keys=True))


def fail(sentence: str, *, code: int = 1) -> NoReturn:
    """Say why on standard error and exit."""
    ERR.print(f"[bold red]error:[/] {escape(sentence)}")
    raise typer.Exit(code)
