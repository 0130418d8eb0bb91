"""UUIDv7 (RFC 9562): ids that sort by the millisecond they were made in, and are random otherwise.

Law: pure, given the time and the randomness.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from uuid import UUID

_VERSION = 7 << 76
_VARIANT = 0b10 << 62
_RANDOM = ((1 << 12) - 1) << 64 | ((1 << 62) - 1)


def uuid7(at_ms: int | None = None, randomness: Callable[[int], bytes] = os.urandom) -> UUID:
    """Make an id of this Unix millisecond, now when left out; the other 74 bits, the last byte among them, are random."""
    milliseconds = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    random = int.from_bytes(randomness(10)) & _RANDOM
    return UUID(int=milliseconds << 80 | _VERSION | _VARIANT | random)


def made_at_ms(uuid: UUID) -> int:
    """Tell when a version 7 id was made, in Unix milliseconds."""
    return uuid.int >> 80
