"""The newest versions and hashes that this process has seen, so that an append need not ask first.

Law: a bounded memory of the store's rows. A stale entry costs a refused statement, never a wrong row: the statement
compares version and hash.
"""

from __future__ import annotations

from collections import OrderedDict
from uuid import UUID

from engine.store.port import GENESIS, Append, Appended


class Heads:
    """Up to `bound` streams, those used last."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        # By integer, because a UUID hashes in Python.
        self._seen: OrderedDict[int, Appended] = OrderedDict()

    def put(self, table_id: UUID, head: Appended) -> None:
        """Remember where a stream stands, and forget the one not used for longest when there are too many."""
        self._seen[table_id.int] = head
        self._seen.move_to_end(table_id.int)
        if len(self._seen) > self._bound:
            self._seen.popitem(last=False)

    def forget(self, table_id: UUID) -> None:
        """Ask again next time."""
        self._seen.pop(table_id.int, None)

    def before(self, append: Append) -> bytes | None:
        """The hash that this append follows, if it is known."""
        if append.expected_version == 0:
            return GENESIS
        seen = self._seen.get(append.table_id.int)
        return seen.hash if seen is not None and seen.version == append.expected_version else None
