"""Hypothesis strategies for every kind of value that events are made of, derived from type hints."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from engine.match import Faces
from engine.rules.cards import Cards, cards_of, face

FACES = [face(rank, suit) for rank in range(15) for suit in range(4 if rank < 13 else 1)]
faces = st.lists(st.sampled_from(FACES), max_size=24)
numbers = st.integers(min_value=0, max_value=1000)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of this type."""
    if hint is Cards:
        return faces.map(cards_of)
    if hint is Faces:
        return faces.map(lambda many: Faces(tuple(many)))
    if get_origin(hint) is tuple:
        return _tuples(get_args(hint))
    if get_origin(hint) in {Union, UnionType}:
        return st.one_of(*map(values_of, get_args(hint)))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return _records(hint)
    plain: dict[Any, st.SearchStrategy[Any]] = {int: numbers, str: texts, bool: st.booleans(), NoneType: st.none()}
    return plain[hint]


def _tuples(items: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if items[-1] is Ellipsis:
        return st.lists(values_of(items[0]), max_size=6).map(tuple)
    return st.tuples(*map(values_of, items))


def _records(made: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(made)
    names = [one.name for one in fields(made)] if is_dataclass(made) else made._fields
    return st.builds(made, **{name: values_of(hints[name]) for name in names})
