"""UUIDv7 (RFC 9562): ids that sort by the millisecond they were made in, and are random otherwise.

Law: pure, given the time and the randomness.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from uuid import UUID

_VERSION = 7 << 76
_VARIANT = 0b10 << 62
_RANDOM = ((1 << 12) - 1) << 64 | ((1 << 62) - 1)


def uuid7(now_ms: int, randomness: Callable[[int], bytes] = os.urandom) -> UUID:
    """Make an id of this Unix millisecond; the other 74 bits, the last byte among them, come from `randomness`."""
    random = int.from_bytes(randomness(10)) & _RANDOM
    return UUID(int=(now_ms & ((1 << 48) - 1)) << 80 | _VERSION | _VARIANT | random)
