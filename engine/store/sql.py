"""The store's SQL: each statement with its name and its purpose.

Law: text only. Every statement names the shard, touches no row of two tables' streams at once except the append, which
touches each on its own, and stands for one transaction.
"""

# ruff: noqa: S608 - what these texts are put together from are constants of this file

from __future__ import annotations

from typing import LiteralString

VERSION_TABLE: LiteralString = "select to_regclass('engine.alembic_version')::text"
"""Whether any migration has run."""

MIGRATED: LiteralString = "select version_num from engine.alembic_version"
"""Which migration the schema stands at."""

FORGETFUL: LiteralString = """
select name from pg_settings
where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off' order by name
"""
"""By which settings the server, or this connection, forgets what it has acknowledged when it crashes."""

_HEAD: LiteralString = "table_id, version, head, owner_epoch, closed, deadline_at_ms, deadline_since_version"

_STREAMS_AND_EVENTS: LiteralString = """
with asked as materialized (
    select * from unnest(
        $1::int2[], $2::uuid[], $3::int8[], $4::bytea[], $5::int8[], $6::bytea[], $7::int8[],
        $8::int8[], $9::int8[], $10::bool[]
    ) with ordinality as asked (
        shard, table_id, expected_version, expected_head, version, head, epoch,
        deadline_at_ms, deadline_since_version, closes, place
    )
),
opened as (
    insert into engine.stream
        (shard, table_id, version, head, owner_epoch, closed, deadline_at_ms, deadline_since_version)
    select shard, table_id, version, head, epoch, closes, nullif(deadline_at_ms, -1), nullif(deadline_since_version, -1)
    from asked where expected_version = 0
    on conflict (shard, table_id) do nothing
    returning table_id
),
moved as (
    update engine.stream set
        version = asked.version,
        head = asked.head,
        owner_epoch = asked.epoch,
        closed = asked.closes,
        deadline_at_ms = nullif(asked.deadline_at_ms, -1),
        deadline_since_version = nullif(asked.deadline_since_version, -1)
    from asked
    where stream.shard = asked.shard and stream.table_id = asked.table_id
        and stream.version = asked.expected_version and stream.head = asked.expected_head
        and stream.owner_epoch <= asked.epoch and not stream.closed
    returning stream.table_id
),
done as (
    select table_id from opened union all select table_id from moved
),
logged as (
    insert into engine.event
        (shard, table_id, version, type, schema, payload, actor, command_id, trace_id, at_ms, hash, ends_command)
    select * from unnest(
        $11::int2[], $12::uuid[], $13::int8[], $14::text[], $15::int4[], $16::bytea[], $17::text[], $18::uuid[],
        $19::text[], $20::int8[], $21::bytea[], $22::bool[]
    ) as event (
        shard, table_id, version, type, schema, payload, actor, command_id, trace_id, at_ms, hash, ends_command
    )
    -- `is true` keeps this a hashed lookup, never a join.
    where (table_id in (select table_id from done)) is true
)
"""

_FACTS: LiteralString = """,
noted as (
    insert into engine.outbox (shard, table_id, position, version, previous_hash, subject, event_id, payload)
    select * from unnest(
        $23::int2[], $24::uuid[], $25::int8[], $26::int8[], $27::bytea[], $28::text[], $29::text[], $30::bytea[]
    ) as fact (shard, table_id, position, version, previous_hash, subject, event_id, payload)
    where (table_id in (select table_id from done)) is true
)
"""

_REFUSED_PLACES: LiteralString = """
select place from asked where table_id not in (select table_id from done)
"""

APPEND: LiteralString = _STREAMS_AND_EVENTS + _REFUSED_PLACES
"""Store many tables' appends. Answers the places, from 1, of those that were refused; their tables are as they were.

A command that is stored already violates the log's index of commands and with it fails the whole statement: to look for
it first would open every partition for every append. -1 stands for no deadline.
"""

APPEND_WITH_FACTS: LiteralString = _STREAMS_AND_EVENTS + _FACTS + _REFUSED_PLACES
"""The same for appends that publish facts as well. Few do, and to be ready for facts costs what five appends cost."""

REFUSED: LiteralString = """
select
    stream.table_id, stream.version, stream.head, stream.owner_epoch, stream.closed,
    stream.deadline_at_ms, stream.deadline_since_version, event.version, event.hash
from unnest(%b::int2[], %b::uuid[], %b::uuid[]) with ordinality as asked (shard, table_id, command_id, place)
left join engine.stream on stream.shard = asked.shard and stream.table_id = asked.table_id
left join engine.event on event.shard = asked.shard and event.table_id = asked.table_id
    and event.command_id = asked.command_id and event.ends_command
order by place
"""
"""Why tables did not take their appends: where they stand, and what the command was answered if it is stored."""

HEADS: LiteralString = """
select asked.table_id, stream.head
from unnest(%b::int2[], %b::uuid[]) as asked (shard, table_id)
join engine.stream on stream.shard = asked.shard and stream.table_id = asked.table_id
"""
"""The heads of some streams, to chain to."""

COMMAND: LiteralString = """
select version, hash from engine.event
where shard = %(shard)s and table_id = %(table_id)s and command_id = %(command_id)s and ends_command
"""
"""What a command was answered."""

HEAD: LiteralString = f"select {_HEAD} from engine.stream where shard = %(shard)s and table_id = %(table_id)s"
"""Where a stream stands."""

CLAIM: LiteralString = f"""
update engine.stream set owner_epoch = %(epoch)s
where shard = %(shard)s and table_id = %(table_id)s and owner_epoch <= %(epoch)s
returning {_HEAD}
"""
"""Write a leader's epoch, unless a newer one is there."""

READ: LiteralString = """
select table_id, version, type, schema, payload, actor, command_id, trace_id, at_ms, hash
from engine.event
where shard = %(shard)s and table_id = %(table_id)s and version > %(after_version)s
order by version limit %(limit)s
"""
"""Events in order."""

LAST_OF_TYPE: LiteralString = """
select version from engine.event
where shard = %(shard)s and table_id = %(table_id)s and type = %(type)s
order by version desc limit 1
"""
"""The newest event of a type."""

OPEN_STREAMS: LiteralString = f"""
select {_HEAD} from engine.stream
where not closed and (%(before)s::uuid is null or table_id < %(before)s::uuid)
order by table_id desc limit %(limit)s
"""
"""Streams that are not closed, newest first: of all shards, for operators."""

DEADLINES: LiteralString = f"""
select {_HEAD} from engine.stream
where shard = any(%(shards)s::int2[]) and not closed and deadline_at_ms is not null
order by deadline_at_ms, table_id limit %(limit)s
"""
"""Streams with a deadline, earliest first."""

PENDING: LiteralString = """
select table_id, position, subject, event_id, payload, version, previous_hash
from engine.outbox
where shard = any(%(shards)s::int2[])
order by table_id, position limit %(limit)s
"""
"""Facts that are not published."""

PUBLISHED: LiteralString = """
delete from engine.outbox where shard = %(shard)s and table_id = %(table_id)s and position = %(position)s
"""
"""Forget a fact."""

KEEP_LEASES: LiteralString = """
with term as (
    select now() + %(ttl_ms)s * interval '1 millisecond' as until
),
others as (
    delete from engine.contender where until < now() - interval '1 hour'
),
present as (
    insert into engine.contender (owner, until) select %(owner)s, until from term
    on conflict (owner) do update set until = excluded.until
),
live as (
    select 1 + count(*) as owners from engine.contender where owner <> %(owner)s and until > now()
),
share as (
    select least(%(want)s, ceil(256.0 / owners))::int as size from live
),
mine as (
    select shard, row_number() over (order by shard) as place from engine.lease where owner = %(owner)s
),
renewed as (
    update engine.lease set until = term.until from term, share, mine
    where lease.shard = mine.shard and lease.owner = %(owner)s and mine.place <= share.size
    returning lease.shard, lease.epoch
),
given_up as (
    update engine.lease set owner = null, until = null from share, mine
    where lease.shard = mine.shard and lease.owner = %(owner)s and mine.place > share.size
),
free as (
    select shard from engine.lease
    where owner is null or (owner <> %(owner)s and until <= now())
    order by shard
    limit (select greatest(share.size - (select count(*) from mine), 0) from share)
    for update skip locked
),
taken as (
    update engine.lease set owner = %(owner)s, epoch = lease.epoch + 1, until = term.until from term, free
    where lease.shard = free.shard
    returning lease.shard, lease.epoch
),
next_end as (
    select ceil(extract(epoch from min(until) - now()) * 1000)::bigint as in_ms from engine.lease
    where owner <> %(owner)s and until > now()
)
select live.owners, next_end.in_ms, held.shard, held.epoch
from live cross join next_end left join (select * from renewed union all select * from taken) as held on true
order by held.shard
"""
"""One round of an owner's leases, by the database's clock: renew, let go of what is over the fair share, take."""

RELEASE_LEASES: LiteralString = """
with gone as (
    delete from engine.contender where owner = %(owner)s
)
update engine.lease set owner = null, until = null where owner = %(owner)s
"""
"""A clean stop: give everything up at once."""

LEADER: LiteralString = "select owner from engine.lease where shard = %(shard)s and until > now()"
"""Who leads a shard."""

STREAMS_BETWEEN: LiteralString = f"""
select {_HEAD} from engine.stream
where table_id >= %(first)s and table_id < %(before)s
order by table_id limit %(limit)s
"""
"""Streams of a span of table ids, open or closed, by table id: of all shards, for operators."""

UNSETTLED: LiteralString = """
select table_id from engine.stream where not closed and table_id >= %(first)s and table_id < %(before)s
union all
select table_id from engine.outbox where table_id >= %(first)s and table_id < %(before)s
limit 1
"""
"""A stream of a span of table ids that is open, or has facts that are not published."""

PARTITIONS: LiteralString = """
select partition.relname, parent.inhrelid is not null, coalesce(parent.inhdetachpending, false)
from pg_class as partition
left join pg_inherits as parent on parent.inhrelid = partition.oid
where partition.relnamespace = 'engine'::regnamespace and partition.relkind = 'r'
    and partition.relname ~ '^event_[0-9]{8}$'
order by partition.relname
"""
"""The days of the log, whether each is attached, and whether its detaching was broken off."""
