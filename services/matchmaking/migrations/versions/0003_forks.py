"""What inbox and parked facts need to notice that the log of a source was replaced by another.

Law: run once, never edited. A later change is another script.
"""

from __future__ import annotations

from alembic import op

from engine.runtime.gate import FORKS
from engine.runtime.intake import PARKED_HASH

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute(FORKS)
    op.execute(PARKED_HASH)
