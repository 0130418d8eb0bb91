"""Identifiers that sort by the time they were made.

Law: UUID version 7 (RFC 9562) from a given time and the system's randomness; nothing else. The last byte is random.
"""

from __future__ import annotations

import secrets
import time
from uuid import UUID

_RANDOM_BITS = 74
_RAND_B_BITS = 62
_VERSION = 0x7
_VARIANT = 0b10


def uuid7(at_ms: int | None = None) -> UUID:
    """Make a fresh id. `at_ms` is Unix milliseconds, now when left out."""
    milliseconds = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    rand_a, rand_b = divmod(secrets.randbits(_RANDOM_BITS), 1 << _RAND_B_BITS)
    return UUID(int=(milliseconds << 80) | (_VERSION << 76) | (rand_a << 64) | (_VARIANT << 62) | rand_b)


def made_at_ms(uuid: UUID) -> int:
    """Tell when a version 7 id was made, in Unix milliseconds."""
    return uuid.int >> 80
