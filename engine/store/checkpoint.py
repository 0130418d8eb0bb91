"""Signed checkpoints: where every stream of the log stood, in a text that somebody has signed.

Law: text and values; asks a store and changes nothing. The hash chain shows a clumsy change; who owns the database could
chain anew. A checkpoint that is kept out of his reach shows that too, to anybody with the public key: each head that it
names must still be the hash of that event, and no stream may be missing or shorter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from engine.store.port import Log, StreamHead, StreamNotFound

FORMAT = "gouji checkpoint 1"
_SIGNATURE = "signature "
_PAGE = 5000
_AT_ONCE = 32


class NotSigned(ValueError):
    """The text is no checkpoint that the owner of this key has signed; the message says why."""


class Mark(NamedTuple):
    """A stream's head when the checkpoint was made."""

    table_id: UUID
    version: int
    hash: bytes


class Verdict(StrEnum):
    """How a stream stands to its mark."""

    SAME = "same"
    """What was there is there, whatever has come since."""
    MISSING = "missing"
    """There is no such stream any more."""
    SHORTER = "shorter"
    """The stream has lost events."""
    CHANGED = "changed"
    """Another event stands there, or another history before it."""
    ARCHIVED = "archived"
    """The day has left the database: its archive has to be asked."""


class Finding(NamedTuple):
    """One stream of a checkpoint, held against the log."""

    mark: Mark
    verdict: Verdict


class Streams(Log, Protocol):
    """A store whose streams can be gone through and looked at."""

    async def every_stream(self, first: UUID, limit: int) -> Sequence[StreamHead]:
        """Streams, open or closed, from this table id on, by table id."""
        ...

    async def head(self, table_id: UUID) -> StreamHead:
        """Where the stream stands; raises `StreamNotFound`."""
        ...


async def marks(store: Streams) -> list[Mark]:
    """Where every stream stands now, by table id. Raises `StoreUnavailable`."""
    found: list[Mark] = []
    first = UUID(int=0)
    while page := await store.every_stream(first, _PAGE):
        found.extend(Mark(head.table_id, head.version, head.hash) for head in page)
        first = UUID(int=page[-1].table_id.int + 1)
    return found


def signed(found: Iterable[Mark], at_ms: int, private_key: bytes) -> str:
    """Write a checkpoint of this Unix millisecond and sign it with an Ed25519 key (PEM). Raises `ValueError`."""
    key = load_pem_private_key(private_key, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("not an Ed25519 key")  # noqa: TRY004 - a wrong value, as for who cannot be read at all
    lines = (f"{mark.table_id} {mark.version} {mark.hash.hex()}\n" for mark in found)
    text = f"{FORMAT}\nat {at_ms}\n{''.join(lines)}"
    return f"{text}{_SIGNATURE}{key.sign(text.encode()).hex()}\n"


def read(text: str, public_key: bytes) -> list[Mark]:
    """Read a checkpoint that the owner of this key (PEM) has signed. Raises `NotSigned`."""
    body, _, signature = text.rpartition(_SIGNATURE)
    try:
        key = load_pem_public_key(public_key)
        if not isinstance(key, Ed25519PublicKey):
            raise NotSigned("not an Ed25519 key")
        key.verify(bytes.fromhex(signature), body.encode())
        head, _, *lines = body.splitlines()
        if head != FORMAT:
            raise NotSigned("not a checkpoint of this format")
        return [_mark(line) for line in lines]
    except InvalidSignature:
        raise NotSigned("the signature is not that of this key") from None
    except ValueError as broken:
        raise NotSigned(f"not a signed checkpoint: {broken}") from broken


async def compare(store: Streams, found: Sequence[Mark]) -> list[Finding]:
    """Hold the log against a checkpoint. Raises `StoreUnavailable`."""
    findings: list[Finding] = []
    for start in range(0, len(found), _AT_ONCE):
        some = found[start : start + _AT_ONCE]
        verdicts = await asyncio.gather(*(_verdict(store, mark) for mark in some))
        findings.extend(map(Finding, some, verdicts))
    return findings


async def _verdict(store: Streams, mark: Mark) -> Verdict:
    try:
        head = await store.head(mark.table_id)
    except StreamNotFound:
        return Verdict.MISSING
    if head.version < mark.version:
        return Verdict.SHORTER
    if head.version == mark.version and head.hash != mark.hash:
        return Verdict.CHANGED
    events = await store.read(mark.table_id, mark.version - 1, 1)
    if not events:
        return Verdict.ARCHIVED
    return Verdict.SAME if events[0].hash == mark.hash else Verdict.CHANGED


def _mark(line: str) -> Mark:
    table_id, version, digest = line.split(" ")
    return Mark(UUID(table_id), int(version), bytes.fromhex(digest))
