"""The appends that wait, and how they are shared out to the lanes that store them.

Law: knows neither statements nor connections. One table's appends are stored in the order in which they came, one at a
time. Few appends share one statement, as each has its price; many are split, so that one lane makes its statement or
answers while the other's is at the server. Nobody waits long for another one's statement, and the line is bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from engine.store.port import Append, Appended, OutcomeUnknown, StoreUnavailable

FEW = 48
"""So many appends are not split: a statement's own price is that of about as many."""
LINGER_S = 0.005
"""No batch waits longer for another one, whose lane may hang, or whose disk is so slow that two had better wait at once."""


@dataclass(eq=False, slots=True)
class Waiting:
    """An append, who waits for its answer, and since when by the loop's clock."""

    append: Append
    answer: asyncio.Future[Appended]
    since: float

    def accept(self, answer: Appended) -> None:
        """Give the answer to whoever has not gone away."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def refuse(self, reason: Exception) -> None:
        """Tell whoever has not gone away that there is no answer."""
        if not self.answer.done():
            self.answer.set_exception(reason)


@dataclass(eq=False, slots=True)
class Batch:
    """Appends of different tables, by table id. `sent`: the server may have got them."""

    entries: list[Waiting]
    sent: bool = False

    def unanswered(self) -> list[Waiting]:
        """Those without an answer, and those who went away, because nobody knows whether theirs is stored."""
        return [entry for entry in self.entries if not entry.answer.done() or entry.answer.cancelled()]

    def fail(self, cause: Exception) -> None:
        """Give up on those that have no answer yet."""
        for entry in self.unanswered():
            reason = OutcomeUnknown("no answer from the database") if self.sent else StoreUnavailable("not connected")
            reason.__cause__ = cause
            entry.refuse(reason)


@dataclass(eq=False, slots=True)
class Line:
    """Where appends wait for one of `lanes` lanes, in batches of at most `batch`, at most `bound` of them."""

    lanes: int
    batch: int
    bound: int
    _waiting: deque[Waiting] = field(default_factory=deque)
    # Tables by integer, because a UUID hashes and compares in Python.
    _under_way: set[int] = field(default_factory=set)
    _idle: list[asyncio.Future[None]] = field(default_factory=list)
    _called: bool = False
    _lingering: asyncio.TimerHandle | None = None
    _came_through_at: float = 0.0
    _closed: bool = False

    def submit(self, append: Append) -> asyncio.Future[Appended]:
        """Queue an append. Raises `StoreUnavailable` when too many wait or the line is closed."""
        if self._closed:
            raise StoreUnavailable("the store is closed")
        if len(self._waiting) >= self.bound:
            raise StoreUnavailable("too many appends are waiting")
        loop = asyncio.get_running_loop()
        entry = Waiting(append, loop.create_future(), loop.time())
        self._waiting.append(entry)
        self._call()
        return entry.answer

    async def next_batch(self) -> Batch | None:
        """Take the next share as soon as it is worth a statement; None when the line is closed and empty."""
        while not (taken := self._share() if self._worth_a_statement() else {}):
            if self._closed and not self._waiting:
                return None
            await self._be_called()
        self._under_way.update(taken)
        self._call()
        return Batch([entry for _, entry in sorted(taken.items())])

    def release(self, batch: Batch) -> None:
        """Let the tables of a batch have their next turn."""
        self._under_way.difference_update(entry.append.table_id.int for entry in batch.entries)
        self._call()

    def came_through(self) -> None:
        """Note that the database has answered a batch."""
        self._came_through_at = asyncio.get_running_loop().time()

    def give_up(self, since: float, cause: Exception) -> None:
        """Give up on all who wait when no lane has come through since then: they would wait as long, one after another."""
        if self._came_through_at <= since:
            self.fail(cause)

    def fail(self, cause: Exception) -> None:
        """Give up on all who wait; nothing was sent for them."""
        Batch(list(self._waiting)).fail(cause)
        self._waiting.clear()

    def close(self) -> None:
        """Take nothing in any more; what waits has its turn."""
        self._closed = True
        self._call()

    def _worth_a_statement(self) -> bool:
        """Whether a lane should set out: as many wait as are its share, or somebody has waited long enough."""
        if not self._waiting or not self._under_way:
            return bool(self._waiting)
        waited_s = asyncio.get_running_loop().time() - self._waiting[0].since
        return len(self._waiting) >= self._fair() or waited_s >= LINGER_S

    def _fair(self) -> int:
        """A lane's share of all there are; all when they are few."""
        there = len(self._waiting) + len(self._under_way)
        return min(self.batch, there if there <= FEW else -(-there // self.lanes))

    def _share(self) -> dict[int, Waiting]:
        """Take a lane's share of the oldest, one of a table; a table's second one stays, and so do those behind it."""
        most = self._fair()
        taken: dict[int, Waiting] = {}
        left: list[Waiting] = []
        while self._waiting and len(taken) < most:
            entry = self._waiting.popleft()
            table = entry.append.table_id.int
            if table in self._under_way or taken.setdefault(table, entry) is not entry:
                left.append(entry)
        self._waiting.extendleft(reversed(left))
        return taken

    async def _be_called(self) -> None:
        called = asyncio.get_running_loop().create_future()
        self._idle.append(called)
        self._linger()
        try:
            await called
        finally:
            self._called = False
            if called in self._idle:
                self._idle.remove(called)

    def _call(self) -> None:
        """Call the lane that was busy last, whose server process is warm, when there is something for it to do."""
        if self._closed:
            self._call_all()
        elif self._waiting and self._idle and not self._called:
            if self._worth_a_statement():
                self._called = True
                self._idle.pop().set_result(None)
            else:
                self._linger()

    def _call_all(self) -> None:
        while self._idle:
            self._idle.pop().set_result(None)

    def _linger(self) -> None:
        """See to it that who waits now has a lane soon, whatever becomes of those that are under way."""
        if self._waiting and self._lingering is None:
            self._lingering = asyncio.get_running_loop().call_later(LINGER_S, self._lingered)

    def _lingered(self) -> None:
        self._lingering = None
        self._call()


class Turnstile:
    """Lets one statement at a time to the server, where two would only take the processor from each other.

    One that takes its time lets the next one pass.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._coming = 0

    async def enter(self) -> bool:
        """Wait for the turn. False when the one before took its time: then nobody's turn ends with this one."""
        if not self._turn.locked():
            return await self._turn.acquire()
        self._coming += 1
        try:
            async with asyncio.timeout(LINGER_S):
                return await self._turn.acquire()
        except TimeoutError:
            return False
        finally:
            self._coming -= 1

    async def leave(self) -> None:
        """End the turn; the next one sets out before this one's answers are given."""
        self._turn.release()
        if self._coming:
            await asyncio.sleep(0)
