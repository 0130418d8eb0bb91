"""Who wrote to a table in which term of leadership, noted by the database itself in the moment of writing.

Law: a trigger of the harness on a throw-away database, as its owner; the house has none and knows of none. A table's
notes are in the order in which its row was written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

import psycopg

from tests.chaos.harness.evidence import Term

_LAY = """
create schema chaos;
create table chaos.term (
    ordinal bigint generated always as identity primary key,
    table_id uuid not null,
    version bigint not null,
    epoch bigint not null
);
create function chaos.note_term() returns trigger language plpgsql security definer as $$
begin
    insert into chaos.term (table_id, version, epoch) values (new.table_id, new.version, new.owner_epoch);
    return null;
end
$$;
create trigger note_term after insert or update on engine.stream for each row execute function chaos.note_term();
"""
_TERMS = "select table_id, version, epoch from chaos.term order by ordinal"


def lay(dsn: str) -> None:
    """Begin to note, in a database that is migrated."""
    with psycopg.connect(dsn) as connection:
        connection.execute(_LAY)


def terms(dsn: str) -> Mapping[UUID, Sequence[Term]]:
    """Everything that was written to each table's row."""
    found: dict[UUID, list[Term]] = defaultdict(list)
    with psycopg.connect(dsn) as connection:
        for table_id, version, epoch in connection.execute(_TERMS):
            found[table_id].append(Term(version, epoch))
    return found
