"""Streams, their events, the outbox, and the leases of shards.

Law: run once, never edited; a later change is another script. No sequences, triggers, functions or foreign keys, and the
shard in every key, so that the tables can be spread over many servers by shard. The engine's role may add events and
read them, nothing else: what is in the log stays.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, ProgrammingError

revision = "0001"
down_revision = None

ROLE = "gouji_engine"

TABLES = (
    # An append changes no indexed column, so that its new row version stays on the page (a HOT update).
    """
    create table engine.stream (
        shard smallint not null check (shard between 0 and 255),
        table_id uuid not null,
        version bigint not null check (version > 0),
        head bytea not null check (octet_length(head) = 32),
        owner_epoch bigint not null,
        closed boolean not null,
        deadline_at_ms bigint,
        deadline_since_version bigint,
        primary key (shard, table_id),
        check ((deadline_at_ms is null) = (deadline_since_version is null)),
        check (not closed or deadline_at_ms is null)
    ) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05)
    """,
    "create index stream_open on engine.stream (table_id) where not closed",
    "create index stream_open_of_shard on engine.stream (shard, table_id) where not closed",
    # A day of table ids (UUIDv7) is a partition; `engine.store.partitions` makes them ahead of time.
    """
    create table engine.event (
        shard smallint not null,
        table_id uuid not null,
        version bigint not null,
        type text not null,
        schema integer not null,
        payload bytea not null,
        actor text not null,
        command_id uuid not null,
        trace_id text not null,
        at_ms bigint not null,
        hash bytea not null,
        ends_command boolean not null,
        primary key (shard, table_id, version)
    ) partition by range (table_id)
    """,
    # A command is stored once: its last event carries its name alone.
    "create unique index event_command on engine.event (shard, table_id, command_id) where ends_command",
    """
    create table engine.outbox (
        shard smallint not null,
        table_id uuid not null,
        position bigint not null check (position > 0),
        version bigint not null,
        previous_hash bytea not null,
        subject text not null,
        event_id text not null,
        payload bytea not null,
        primary key (shard, table_id, position)
    ) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)
    """,
    """
    create table engine.lease (
        shard smallint primary key check (shard between 0 and 255),
        owner text,
        epoch bigint not null default 0,
        until timestamptz,
        check ((owner is null) = (until is null))
    ) with (fillfactor = 50)
    """,
    "insert into engine.lease (shard) select generate_series(0, 255)",
    # Who is alive and wants shards; without it a newcomer that holds none could not ask for his share.
    """
    create table engine.contender (
        owner text primary key,
        until timestamptz not null
    ) with (fillfactor = 50)
    """,
)

GRANTS = (
    f"grant usage on schema engine to {ROLE}",
    f"grant select, insert, update on engine.stream to {ROLE}",
    f"grant select, insert on engine.event to {ROLE}",
    f"grant select, insert, delete on engine.outbox to {ROLE}",
    f"grant select, update on engine.lease to {ROLE}",
    f"grant select, insert, update, delete on engine.contender to {ROLE}",
)


def upgrade() -> None:
    _make_role()
    for statement in (*TABLES, *GRANTS):
        op.execute(statement)


def _make_role() -> None:
    """Roles belong to the whole server: deployment, or another database's migration, may have made it already."""
    connection = op.get_bind()
    known = connection.execute(text("select 1 from pg_roles where rolname = :role"), {"role": ROLE}).first()
    if known:
        return
    try:
        with connection.begin_nested():
            connection.execute(text(f"create role {ROLE} nologin"))
    except (IntegrityError, ProgrammingError):
        # Made by another migrator in this very moment; a missing right to make it shows at the grants.
        return
