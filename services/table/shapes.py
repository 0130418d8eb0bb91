"""The shape of what clients send: identifiers, text and counts within bounds, before anything is done with them.

Law: pure checks of plain values; what makes sense in the game is for the engine to judge. Everything that fails raises
`MalformedRequest` with the field's name and never with its content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from uuid import UUID

from engine.runtime.faults import MalformedRequest

CARDS = re.compile(r"[2-9TJQKAsbSHDC]{0,160}")
RANKS = re.compile(r"[2-9TJQKAsb]{0,15}")
CONTRIBUTION = re.compile(r"[0-9a-fA-F]{0,64}")
VARIANT_KEY = re.compile(r"[a-z0-9-]{1,64}")
SWITCH = re.compile(r"[a-z_]{1,40}(=[ -~]{1,80})?")
MOST_SETS = 64
MOST_SWITCHES = 64
MOST_DEALS = 1000
SEATS = 6

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DAY_MS = 24 * 60 * 60 * 1000
_SKEW_MS = 5 * 60 * 1000


def uuid(field: str, text: str) -> UUID:
    """Read a UUID in its canonical form."""
    return UUID(matching(field, text, _UUID))


def matching(field: str, text: str, pattern: re.Pattern[str]) -> str:
    """Pass the text on when all of it has this form."""
    if not pattern.fullmatch(text):
        raise MalformedRequest(f"The field `{field}` has not the right form.")
    return text


def all_matching(field: str, texts: Sequence[str], pattern: re.Pattern[str], most: int) -> Sequence[str]:
    """Pass the texts on when there are not too many and all have this form."""
    below(field, len(texts), most + 1)
    for text in texts:
        matching(field, text, pattern)
    return texts


def below(field: str, number: int, limit: int) -> int:
    """Pass a number from 0 up to but not including the limit on."""
    if not 0 <= number < limit:
        raise MalformedRequest(f"The field `{field}` is out of bounds.")
    return number


def opened_table_id(player_id: str, command_id: UUID, now_ms: int) -> UUID:
    """Name the table that this player opens with this command: always the same one, and nobody else's.

    The command id must be a UUIDv7 of the last day; its time becomes the table's, so that ids sort by age.
    """
    at_ms = command_id.int >> 80
    if command_id.version != 7 or not -_DAY_MS <= at_ms - now_ms <= _SKEW_MS:
        raise MalformedRequest("The command id of an opening must be a UUIDv7 made within the last day.")
    rest = int.from_bytes(sha256(command_id.bytes + player_id.encode()).digest()[:10], "big")
    value = at_ms << 80 | rest & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62
    return UUID(int=value)
