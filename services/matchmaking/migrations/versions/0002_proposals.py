"""Matches between their being proposed and their table's being open.

Law: run once, never edited. A later change is another script.
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

ROLE = "gouji_matchmaking"

SCHEMA = (
    """
    create table match (
        table_id uuid primary key,
        state text not null default 'proposed' check (state in ('proposed', 'opened', 'withdrawn')),
        proposed_at timestamptz not null default clock_timestamp()
    )
    """,
    "create index match_by_time on match (state, proposed_at)",
    """
    alter table ticket
        drop constraint ticket_state_check,
        drop constraint ticket_check,
        drop constraint ticket_check1,
        drop constraint ticket_check2,
        add constraint ticket_state check (state in ('waiting', 'proposed', 'matched', 'cancelled', 'expired')),
        add constraint ticket_end check ((state in ('waiting', 'proposed')) = (ended_at is null)),
        add constraint ticket_table check ((state in ('proposed', 'matched')) = (table_id is not null)),
        add constraint ticket_seat check ((state in ('proposed', 'matched')) = (seat is not null))
    """,
    "drop index one_active_ticket",
    "create unique index one_active_ticket on ticket (player_id) where state in ('waiting', 'proposed')",
    "drop index ended_by_time",
    "create index ended_by_time on ticket (ended_at) where ended_at is not null",
    # Only tables that the engine told of are left: a player with a proposed ticket is kept from queueing by the ticket.
    "delete from seated where not confirmed",
    "alter table seated drop column confirmed, drop column since",
)


def upgrade() -> None:
    for statement in SCHEMA:
        op.execute(statement)
    op.execute(f"grant select, insert, update, delete on match to {ROLE}")
