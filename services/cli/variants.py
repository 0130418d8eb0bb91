"""`gouji variants`: the named variants and their switches.

Law: prints what `engine.rules.variant` holds.
"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from services.cli.output import fail, print_json

WIDTH = 200
"""Room for all variants side by side, whatever the terminal; a narrow one wraps."""


def variants(
    key: Annotated[str | None, typer.Argument(help="One variant; all of them without it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print switches as JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the page docs/variants.md.")] = False,
) -> None:
    """Show the switches of the named variants, side by side."""
    if as_markdown:
        from engine.rules.variants_table import markdown

        typer.echo(markdown(), nl=False)
        return
    known = _switches()
    if key is not None and key not in known:
        fail(f"no variant is called {key}; there are {', '.join(known)}", code=2)
    chosen = known if key is None else {key: known[key]}
    if as_json:
        print_json(chosen)
    else:
        Console(width=WIDTH).print(_table(chosen))


def _switches() -> dict[str, dict[str, str]]:
    from engine.rules.variant import SWITCHES, VARIANTS, switch_text

    return {key: {name: switch_text(variant, name) for name in SWITCHES} for key, variant in VARIANTS.items()}


def _table(chosen: dict[str, dict[str, str]]) -> Table:
    table = Table("switch", *chosen, box=None, pad_edge=False)
    for name in next(iter(chosen.values())):
        table.add_row(name, *(switches[name] for switches in chosen.values()))
    return table
