"""How much one player may ask of this replica: actions and openings by rate, streams by number.

Law: plain counting in memory, bounded itself. Limits act on whole commands before anything is sent; what is over a limit
raises `Busy` with the limit's name, and nothing is ever dropped silently.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from engine.runtime.faults import Busy

MOST_PLAYERS = 100_000
"""Players whose recent rate is remembered; the longest idle one is forgotten first."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many per second in the long run, and at most `burst` at once."""

    per_second: float
    burst: float


class Meter:
    """A token bucket for each player."""

    def __init__(self, name: str, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, player_id: str) -> None:
        """Count one. Raises `Busy` when it is one too many."""
        now = self._clock()
        tokens, at = self._buckets.pop(player_id, (self._rate.burst, now))
        tokens = min(self._rate.burst, tokens + (now - at) * self._rate.per_second)
        has_one = tokens >= 1
        self._buckets[player_id] = (tokens - has_one, now)
        if len(self._buckets) > MOST_PLAYERS:
            self._buckets.popitem(last=False)
        if not has_one:
            raise Busy(f"Too many {self._name} at once.", reason="RATE_LIMITED", metadata={"limit": self._name})


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits for one player on one replica."""

    actions: Rate = Rate(per_second=10.0, burst=30.0)
    openings: Rate = Rate(per_second=30 / 3600, burst=10.0)
    streams: int = 16


class Limits:
    """The counters of this replica."""

    def __init__(self, bounds: Bounds) -> None:
        self.actions = Meter("actions", bounds.actions)
        self.openings = Meter("openings", bounds.openings)
        self._most_streams = bounds.streams
        self._streams: Counter[str] = Counter()

    @contextmanager
    def stream(self, player_id: str) -> Iterator[None]:
        """Hold one of the player's streams. Raises `Busy` when there are too many."""
        if self._streams[player_id] >= self._most_streams:
            raise Busy("Too many streams at once.", reason="TOO_MANY_STREAMS", metadata={"limit": "streams"})
        self._streams[player_id] += 1
        try:
            yield
        finally:
            self._streams -= Counter((player_id,))
