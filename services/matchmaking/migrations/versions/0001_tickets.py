"""Tickets, queues, who is seated, inbox, parked facts and outbox.

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

ROLE = "gouji_matchmaking"

SCHEMA = (
    """
    create table queue (
        variant_key text not null,
        deals integer not null,
        primary key (variant_key, deals)
    )
    """,
    """
    create table ticket (
        ticket_id uuid primary key,
        player_id text not null,
        command_id uuid not null,
        variant_key text not null,
        deals integer not null,
        state text not null default 'waiting' check (state in ('waiting', 'matched', 'cancelled', 'expired')),
        created_at timestamptz not null default clock_timestamp(),
        seen_at timestamptz not null default clock_timestamp(),
        ended_at timestamptz,
        table_id uuid,
        seat smallint check (seat between 0 and 5),
        complaint text not null default '',
        check ((state = 'waiting') = (ended_at is null)),
        check ((state = 'matched') = (table_id is not null)),
        check ((state = 'matched') = (seat is not null)),
        unique (player_id, command_id),
        unique (table_id, seat)
    )
    """,
    "create unique index one_active_ticket on ticket (player_id) where state = 'waiting'",
    "create index waiting_by_age on ticket (variant_key, deals, created_at, ticket_id) where state = 'waiting'",
    "create index waiting_by_sign_of_life on ticket (seen_at) where state = 'waiting'",
    "create index ended_by_time on ticket (ended_at) where state <> 'waiting'",
    """
    create table seated (
        table_id uuid not null,
        player_id text not null,
        confirmed boolean not null,
        since timestamptz not null default clock_timestamp(),
        primary key (table_id, player_id)
    )
    """,
    "create index seated_by_player on seated (player_id)",
    "create index unconfirmed_by_time on seated (since) where not confirmed",
    INBOX,
    PARKED,
    OUTBOX,
)


def upgrade() -> None:
    for statement in SCHEMA:
        op.execute(statement)
    ensure_role(op.get_bind(), ROLE)
    op.execute(f"grant usage on schema matchmaking to {ROLE}")
    op.execute(f"grant select, insert, update, delete on queue, ticket, seated, inbox, parked, outbox to {ROLE}")
