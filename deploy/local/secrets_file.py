"""Secrets of a local installation: made by chance when first asked for, kept in a file that only its owner reads.

Law: values are made here and nowhere else; nothing logs them.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path


def kept(path: Path, names: Iterable[str]) -> dict[str, str]:
    """The secrets of these names, 160 bits each; those that the file lacks are made and added.

    A secret starts with a letter: configuration files read one of digits as a number.
    """
    known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    missing = {name: f"s{secrets.token_hex(20)}" for name in names if name not in known}
    if missing:
        write_private(path, json.dumps(known | missing, indent=2))
    return known | missing


def kept_text(path: Path, make: Callable[[], str]) -> str:
    """The secret text of this file, made and kept when there is none."""
    if not path.exists():
        write_private(path, make())
    return path.read_text()


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    partial = path.with_suffix(".partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    partial.replace(path)
