"""How much one caller may ask: token buckets, one a key.

Law: plain counting in memory, bounded itself. What is over a limit raises `Busy` with the limit's name and when to come
back; nothing is dropped silently.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from engine.runtime.faults import Busy

MOST_KEYS = 100_000
"""Callers whose recent rate is remembered; the longest idle one is forgotten first."""

RETRY_AFTER = "retry_after_ms"
"""The key of a fault's metadata that says when to come back."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many per second in the long run, and at most `burst` at once."""

    per_second: float
    burst: float


class Meter:
    """A token bucket for each key. `name` says in a refusal what there was too much of."""

    def __init__(self, name: str, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> None:
        """Count one. Raises `Busy` when it is one too many."""
        now = self._clock()
        tokens, at = self._buckets.pop(key, (self._rate.burst, now))
        tokens = min(self._rate.burst, tokens + (now - at) * self._rate.per_second)
        has_one = tokens >= 1
        self._buckets[key] = (tokens - has_one, now)
        if len(self._buckets) > MOST_KEYS:
            self._buckets.popitem(last=False)
        if not has_one:
            raise self._refusal(1 - tokens)

    def _refusal(self, missing: float) -> Busy:
        wait_ms = math.ceil(missing / self._rate.per_second * 1000)
        metadata = {"limit": self._name, RETRY_AFTER: str(wait_ms)}
        return Busy(f"Too many {self._name} at once.", reason="RATE_LIMITED", metadata=metadata)
