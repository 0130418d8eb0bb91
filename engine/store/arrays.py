"""Columns of values as PostgreSQL's binary arrays, packed in one go.

Law: bytes only; knows no table. The driver's own way looks at every element anew, which costs more than everything else
that this process does for an append, and lets the type of a column change with its values.

An array of one dimension is: dimensions, whether it has nulls, the element's type, its length, the first index (five
integers of 32 bits, big-endian; the last two only when there are elements), then each element after its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from struct import Struct
from typing import ClassVar
from uuid import UUID

from psycopg import AsyncConnection, postgres, pq
from psycopg.adapt import Dumper
from psycopg.rows import TupleRow
from psycopg.types import TypeInfo

_HEAD = Struct("!5I")
_EMPTY = Struct("!3I")
_LENGTH = Struct("!I")
_INT8 = Struct("!q")


class Packed(bytes):
    """A packed column; the subclass tells its type."""

    kind: ClassVar[TypeInfo]


class Int8s(Packed):
    """bigint[]."""

    kind = postgres.types["int8"]


class Uuids(Packed):
    """uuid[]."""

    kind = postgres.types["uuid"]


class Byteas(Packed):
    """bytea[]."""

    kind = postgres.types["bytea"]


class Texts(Packed):
    """text[]."""

    kind = postgres.types["text"]


class Bools(Packed):
    """boolean[]."""

    kind = postgres.types["bool"]


def int8s(values: Sequence[int]) -> Int8s:
    """Pack integers of 64 bits."""
    return Int8s(_fixed(Int8s, 8, list(map(_INT8.pack, values))))


def uuids(values: Sequence[UUID]) -> Uuids:
    """Pack UUIDs."""
    return Uuids(_fixed(Uuids, 16, [value.int.to_bytes(16, "big") for value in values]))


def bools(values: Sequence[bool]) -> Bools:
    """Pack truth values."""
    return Bools(_fixed(Bools, 1, [b"\1" if value else b"\0" for value in values]))


def byteas(values: Sequence[bytes]) -> Byteas:
    """Pack byte strings."""
    return Byteas(_varying(Byteas, values))


def texts(values: Sequence[str]) -> Texts:
    """Pack texts."""
    return Texts(_varying(Texts, [value.encode() for value in values]))


def register(connection: AsyncConnection[TupleRow]) -> None:
    """Let statements of this connection take packed columns."""
    for kind in (Int8s, Uuids, Byteas, Texts, Bools):
        connection.adapters.register_dumper(kind, _dumper(kind))


def _dumper(packed: type[Packed]) -> type[Dumper]:
    class PackedDumper(Dumper):
        format = pq.Format.BINARY
        oid = packed.kind.array_oid

        def dump(self, obj: bytes) -> bytes:
            return obj

    return PackedDumper


def _head(packed: type[Packed], length: int) -> bytes:
    oid = packed.kind.oid
    return _HEAD.pack(1, 0, oid, length, 1) if length else _EMPTY.pack(0, 0, oid)


def _fixed(kind: type[Packed], width: int, values: Sequence[bytes]) -> bytes:
    """All elements have one length, so that it is the glue between them."""
    glue = _LENGTH.pack(width)
    return _head(kind, len(values)) + (glue + glue.join(values) if values else b"")


def _varying(kind: type[Packed], values: Sequence[bytes]) -> bytes:
    lengths = map(_LENGTH.pack, map(len, values))
    return _head(kind, len(values)) + b"".join(chain.from_iterable(zip(lengths, values, strict=True)))
