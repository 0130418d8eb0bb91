"""The named variants side by side, as a page of documentation.

Law: text made from `VARIANTS` alone; `docs/variants.md` is this text, which CI compares.
"""

from __future__ import annotations

from engine.rules.variant import SWITCHES, VARIANTS, switch_text

_HEAD = """# Variants

A variant is a complete set of switch values (R13 of the [rule book](rules.md)). A table may be opened with any of these and
any overrides, written `switch=value`; combinations that nobody can play are refused with the names of the switches. Values in
bold differ from `qingdao-charter`. This page is generated: `gouji variants --markdown`.
"""


def markdown() -> str:
    """The page `docs/variants.md`."""
    rows = [f"| switch | {' | '.join(f'`{key}`' for key in VARIANTS)} |", "|---|" + "---|" * len(VARIANTS)]
    rows += [f"| `{name}` | {' | '.join(_cells(name))} |" for name in SWITCHES]
    return _HEAD + "\n" + "\n".join(rows) + "\n"


def _cells(name: str) -> list[str]:
    texts = [switch_text(variant, name) for variant in VARIANTS.values()]
    return [text if text == texts[0] else f"**{text}**" for text in texts]
