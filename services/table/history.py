"""The port through which feeds and streams fetch what an audience has missed.

Law: types only, and the binding of a table and an asker to a source. The adapter is `engine_client.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from services.table.wire import Page

PAGE = 200
"""Events fetched at once."""

Source = Callable[[int], Awaitable[Page]]
"""Fetches one asker's events after a version, and the newest sight. Raises the runtime's faults."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who wants to see a table, as the caller was authenticated; nobody for the public's eyes."""

    player_id: str
    role: str = "player"


NOBODY = Asker("")


class Historian(Protocol):
    """Whoever can tell what an audience has missed."""

    async def history(self, table_id: UUID, asker: Asker, after: int, limit: int) -> Page:
        """Fetch events after a version and the newest sight, in the form of the asker's audience."""
        ...


def source(historian: Historian, table_id: UUID, asker: Asker) -> Source:
    """Bind a table and an asker."""

    async def fetch(after: int) -> Page:
        return await historian.history(table_id, asker, after, PAGE)

    return fetch
