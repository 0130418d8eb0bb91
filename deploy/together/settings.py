"""What an operator may set on table service and engine in one process.

Law: both services' settings joined, nothing of its own.
"""

from __future__ import annotations

from engine.service.settings import EngineSettings
from services.table.settings import TableSettings


class TogetherSettings(EngineSettings, TableSettings):
    """The account on the bus and in Postgres is the engine's."""
