"""One event of every kind, always the same: what is written to `tests/golden/stored/` when a new shape is stored.

`python -m tests.support.samples > tests/golden/stored/schema_N.txt` writes the samples of the present shapes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import StrEnum
from itertools import count
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from engine.match import Faces
from engine.rules.cards import Cards, parse, parse_faces
from engine.service import codec

CARDS = "bsTSTHTD2C9H"


def sample(made: Any) -> Any:
    """A value of this type with every field filled, none twice with the same number."""
    return _sample(made, count(1))


def _sample(hint: Any, numbers: Iterator[int]) -> Any:
    if hint is Cards:
        return parse(CARDS[: 4 + 2 * (next(numbers) % 4)])
    if hint is Faces:
        return Faces(parse_faces(CARDS))
    if get_origin(hint) is tuple:
        return _items(get_args(hint), numbers)
    if given := [one for one in get_args(hint) if one is not NoneType]:
        return _sample(given[0], numbers)
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return _record(hint, numbers)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return list(hint)[-1]
    number = next(numbers)
    return {int: number, str: f"word {number}", bool: True}[hint]


def _items(items: tuple[Any, ...], numbers: Iterator[int]) -> tuple[Any, ...]:
    kinds = (items[0],) * 2 if items[-1] is Ellipsis else items
    return tuple(_sample(kind, numbers) for kind in kinds)


def _record(made: Any, numbers: Iterator[int]) -> Any:
    hints = get_type_hints(made)
    names = [one.name for one in fields(made)] if is_dataclass(made) else made._fields
    return made(*(_sample(hints[name], numbers) for name in names))


def lines() -> Iterator[str]:
    """For each kind its name, schema, stored bytes in hex, and the fingerprint of the event they mean."""
    for event_type in codec.EVENT_TYPES:
        event = sample(event_type)
        stored = codec.encode(event)
        yield f"{stored.type} {stored.schema} {stored.payload.hex() or '-'} {codec.state_hash(event)}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
