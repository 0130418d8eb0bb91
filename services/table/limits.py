"""How much one player may ask of this replica: actions and openings by rate, streams by number.

Law: counting in memory, bounded itself. Limits act on whole commands before anything is sent; what is over a limit
raises `Busy` with the limit's name, and nothing is ever dropped silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from engine.runtime.faults import Busy
from engine.runtime.limits import Meter, Rate


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits for one player on one replica."""

    actions: Rate
    openings: Rate
    streams: int


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
            self._leave(player_id)

    def _leave(self, player_id: str) -> None:
        """Count one stream less, and forget a player without any."""
        self._streams[player_id] -= 1
        if not self._streams[player_id]:
            del self._streams[player_id]
