"""The pauses of one who comes back: growing, bounded, at random, so that many do not come back at once.

Law: numbers only.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

FIRST_S = 0.05
LONGEST_S = 2.0


def growing() -> Iterator[float]:
    """Endless pauses in seconds, each up to twice the one before (full jitter)."""
    ceiling = FIRST_S
    while True:
        yield random.uniform(0, ceiling)  # noqa: S311 - jitter is no secret
        ceiling = min(2 * ceiling, LONGEST_S)
