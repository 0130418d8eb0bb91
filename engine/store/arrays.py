"""Columns of values as PostgreSQL's binary arrays, packed in one go.

Law: bytes only; knows no table. The driver's own way looks at every element anew, which costs more than everything else
that this process does for an append.

An array of one dimension is: dimensions, whether it has nulls, the element's type, its length, the first index (five
integers of 32 bits, big-endian; the last two only when there are elements), then each element after its length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from struct import Struct
from typing import Final
from uuid import UUID

from psycopg import postgres

_HEAD: Final = Struct("!5I")
_EMPTY: Final = Struct("!3I")
_LENGTH: Final = Struct("!I")


def int2s(values: Sequence[int]) -> bytes:
    """Pack smallint[]."""
    return _fixed(_INT2, 2, list(map(_INT2_OF, values)))


def int4s(values: Sequence[int]) -> bytes:
    """Pack integer[]."""
    return _fixed(_INT4, 4, list(map(_INT4_OF, values)))


def int8s(values: Sequence[int]) -> bytes:
    """Pack bigint[]."""
    return _fixed(_INT8, 8, list(map(_INT8_OF, values)))


def uuids(values: Sequence[UUID]) -> bytes:
    """Pack uuid[]."""
    return _fixed(_UUID, 16, [value.int.to_bytes(16, "big") for value in values])


def bools(values: Sequence[bool]) -> bytes:
    """Pack boolean[]."""
    return _fixed(_BOOL, 1, [b"\1" if value else b"\0" for value in values])


def byteas(values: Sequence[bytes]) -> bytes:
    """Pack bytea[]."""
    return _varying(_BYTEA, values)


def texts(values: Sequence[str]) -> bytes:
    """Pack text[]."""
    return _varying(_TEXT, [value.encode() for value in values])


def _oid(name: str) -> int:
    return postgres.types[name].oid


_INT2: Final = _oid("int2")
_INT4: Final = _oid("int4")
_INT8: Final = _oid("int8")
_UUID: Final = _oid("uuid")
_BOOL: Final = _oid("bool")
_BYTEA: Final = _oid("bytea")
_TEXT: Final = _oid("text")

_INT2_OF: Final[Callable[[int], bytes]] = Struct("!h").pack
_INT4_OF: Final[Callable[[int], bytes]] = Struct("!i").pack
_INT8_OF: Final[Callable[[int], bytes]] = Struct("!q").pack


def _head(oid: int, length: int) -> bytes:
    return _HEAD.pack(1, 0, oid, length, 1) if length else _EMPTY.pack(0, 0, oid)


def _fixed(oid: int, width: int, values: Sequence[bytes]) -> bytes:
    """All elements have one length, so that it is the glue between them."""
    glue = _LENGTH.pack(width)
    return _head(oid, len(values)) + (glue + glue.join(values) if values else b"")


def _varying(oid: int, values: Sequence[bytes]) -> bytes:
    lengths = map(_LENGTH.pack, map(len, values))
    return _head(oid, len(values)) + b"".join(chain.from_iterable(zip(lengths, values, strict=True)))
