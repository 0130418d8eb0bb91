"""Ratings, the journal of counted results, which stream consumer fills them, inbox, parked facts and outbox.

Law: run once, never edited. A later change is another script.
"""

from __future__ import annotations

from alembic import op

from engine.runtime.gate import INBOX
from engine.runtime.intake import PARKED
from engine.runtime.outbox_relay import OUTBOX
from engine.runtime.roles import ensure_role

revision = "0001"
down_revision = None

ROLE = "gouji_ranking"

SCHEMA = (
    """
    create table rating (
        player_id text collate "C" primary key,
        mu double precision not null,
        sigma double precision not null check (sigma > 0),
        shown integer not null check (shown >= 0),
        deals integer not null check (deals >= 0),
        matches integer not null check (matches >= 0)
    )
    """,
    "create index rating_by_rank on rating (shown desc, player_id)",
    """
    create table result (
        ordinal bigint generated always as identity primary key,
        source text not null,
        position bigint not null,
        payload bytea not null,
        unique (source, position)
    )
    """,
    "create table projection (generation uuid not null)",
    "insert into projection values (gen_random_uuid())",
    INBOX,
    PARKED,
    OUTBOX,
)


def upgrade() -> None:
    for statement in SCHEMA:
        op.execute(statement)
    ensure_role(op.get_bind(), ROLE)
    op.execute(f"grant usage on schema ranking to {ROLE}")
    op.execute(f"grant select, insert, update, delete on rating, inbox, parked, outbox to {ROLE}")
    op.execute(f"grant select, insert on result to {ROLE}")
    op.execute(f"grant select on projection to {ROLE}")
