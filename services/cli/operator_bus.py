"""The bus for an operator's commands, found by the environment (`GOUJI_NATS_…`).

Law: connects and lets go; what is asked over it stands elsewhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.runtime.bus_nats import NatsBus

CONNECT_S = 5.0


@asynccontextmanager
async def operator_bus() -> AsyncIterator[NatsBus]:
    """A connection for the block. Raises `BusUnavailable`."""
    from dataclasses import replace

    from engine.runtime.bus_nats import NatsBus
    from engine.runtime.parts import reaching_nats
    from engine.runtime.settings import BusSettings

    options = replace(reaching_nats(BusSettings(), "gouji-operator"), connect_within=CONNECT_S)
    bus = await NatsBus.connect(options)
    try:
        yield bus
    finally:
        await bus.close()
