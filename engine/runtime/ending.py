"""Ending a task for certain.

Law: knows no task. A call that ends in the very moment of a cancellation may swallow it (`asyncio.wait_for` of Python
3.11 does), and a loop round that call then goes on for ever; so a cancellation that matters is repeated.
"""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_S = 0.5


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel the task until it has ended; harmless when it has."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=AGAIN_S)
