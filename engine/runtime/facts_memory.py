"""Durable streams inside one process: what `bus_memory.py` keeps facts in.

Law: the log of a stream and the positions of its durable names; no subscriptions and no tasks.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter, defaultdict, deque
from dataclasses import replace

from engine.runtime.bus import FactMessage, OutOfSequence
from engine.runtime.streams import Stream, matches

EVENT_ID = "Nats-Msg-Id"
"""The header that carries a fact's event id, spelt as on the other adapter."""

_LONGEST_PAUSE = 30.0


def _now() -> float:
    return asyncio.get_running_loop().time()


class FactLog:
    """A durable stream: its messages in order, the last of each subject, and the event ids it has seen."""

    def __init__(self, stream: Stream) -> None:
        self._limit = stream.max_messages
        self._messages: deque[FactMessage] = deque()
        self._last: dict[str, FactMessage] = {}
        self._by_event: dict[str, int] = {}
        self.positions: dict[str, Position] = {}
        self.end = 0

    def append(self, message: FactMessage, event_id: str, expected: int | None) -> int:
        """Store the message unless its id is known; raises `OutOfSequence`."""
        if event_id in self._by_event and (expected is None or self._holds(message, event_id)):
            return self._by_event[event_id]
        if expected is not None and expected != self.last_sequence(message.subject):
            raise OutOfSequence(message.subject)
        self.end += 1
        stored = replace(message, sequence=self.end)
        self._messages.append(stored)
        self._last[message.subject] = stored
        self._by_event[event_id] = self.end
        self._forget_the_oldest()
        for position in self.positions.values():
            position.wake()
        return self.end

    def last(self, subject: str) -> FactMessage | None:
        """The newest message of this subject."""
        return self._last.get(subject)

    def after(self, subject: str, sequence: int) -> FactMessage | None:
        """The first message of this subject beyond this sequence."""
        return next((one for one in self._messages if one.subject == subject and one.sequence > sequence), None)

    def last_sequence(self, subject: str) -> int:
        """The sequence of the newest message of this subject, 0 for none."""
        last = self._last.get(subject)
        return last.sequence if last else 0

    def counts(self, pattern: str) -> dict[str, int]:
        """How many messages there are, by subject."""
        return dict(Counter(one.subject for one in self._messages if matches(pattern, one.subject)))

    def at(self, sequence: int) -> FactMessage | None:
        """The message with this sequence, if it is still kept."""
        if not self._messages:
            return None
        index = sequence - self._messages[0].sequence
        return self._messages[index] if 0 <= index < len(self._messages) else None

    def _holds(self, message: FactMessage, event_id: str) -> bool:
        """Whether the message of this event id is this very one."""
        return replace(message, sequence=self._by_event[event_id]) == self.at(self._by_event[event_id])

    def _forget_the_oldest(self) -> None:
        while len(self._messages) > self._limit:
            oldest = self._messages.popleft()
            del self._by_event[oldest.headers[EVENT_ID]]
            if self._last[oldest.subject] is oldest:
                del self._last[oldest.subject]


class Position:
    """The position of one durable name in a log, and the messages that come again."""

    def __init__(self, log: FactLog, pattern: str, pause: float) -> None:
        self._log = log
        self._pattern = pattern
        self._pause = pause
        self._next = 1
        self._again: list[tuple[float, int]] = []
        self._failures: defaultdict[int, int] = defaultdict(int)
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Let those who wait look again."""
        self._woken.set()

    async def take(self) -> FactMessage:
        """Wait for the next message that is due."""
        while True:
            self._woken.clear()
            message = self._due() or self._advance()
            if message is not None:
                return message
            await self._sleep()

    def failed(self, message: FactMessage) -> None:
        """Let the message come again after a pause that doubles with each failure."""
        self._failures[message.sequence] += 1
        pause = min(self._pause * 2 ** (message.deliveries - 1), _LONGEST_PAUSE)
        heapq.heappush(self._again, (_now() + pause, message.sequence))
        self.wake()

    def returned(self, message: FactMessage) -> None:
        """Let the message, which nobody handled, come again at once."""
        heapq.heappush(self._again, (_now(), message.sequence))
        self.wake()

    def done(self, message: FactMessage) -> None:
        """Forget the message."""
        self._failures.pop(message.sequence, None)

    def _due(self) -> FactMessage | None:
        if self._again and self._again[0][0] <= _now():
            _, sequence = heapq.heappop(self._again)
            return self._numbered(sequence)
        return None

    def _advance(self) -> FactMessage | None:
        while self._next <= self._log.end:
            message = self._numbered(self._next)
            self._next += 1
            if message is not None and matches(self._pattern, message.subject):
                return message
        return None

    def _numbered(self, sequence: int) -> FactMessage | None:
        message = self._log.at(sequence)
        return replace(message, deliveries=1 + self._failures.get(sequence, 0)) if message else None

    async def _sleep(self) -> None:
        pause = self._again[0][0] - _now() if self._again else None
        try:
            async with asyncio.timeout(pause):
                await self._woken.wait()
        except TimeoutError:
            return
