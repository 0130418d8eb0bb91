"""Every subject of the bus, built in one place.

Law: a subject is spelt here and nowhere else; a payload's message type is named beside it.
"""

from __future__ import annotations

from uuid import UUID

FACTS = "gouji.fact.>"
MATCHES = "gouji.match.>"
RATINGS = "gouji.rating.>"


def shard_of(table_id: UUID) -> int:
    """The shard 0 to 255 that a table belongs to: the last byte of its UUIDv7, which is random."""
    return table_id.bytes[15]


def command(shard: int) -> str:
    """Requests `CommandRequest` to the leader of this shard."""
    return f"gouji.engine.shard.{shard}.command"


def history(shard: int) -> str:
    """Requests `HistoryRequest` to the leader of this shard."""
    return f"gouji.engine.shard.{shard}.history"


def export(shard: int) -> str:
    """Requests `ExportRequest` to the leader of this shard."""
    return f"gouji.engine.shard.{shard}.export"


def moves(shard: int) -> str:
    """Requests `MovesRequest` to the leader of this shard."""
    return f"gouji.engine.shard.{shard}.moves"


QUARANTINES = "gouji.engine.shard.*.quarantine"
"""The pattern of every `quarantine`."""


def quarantine(shard: int) -> str:
    """Requests `QuarantineRequest` to the leader of this shard."""
    return f"gouji.engine.shard.{shard}.quarantine"


FREE_SHARDS = "gouji.engine.shards.free"
"""Live, empty: between engine replicas, that shards have been given up."""


def echo(replica: str) -> str:
    """Live, a number as text: from an engine replica to itself."""
    return f"gouji.engine.echo.{replica}"


LIST = "gouji.engine.list"
"""Requests `ListRequest` to any engine replica."""
REMATCH = "gouji.engine.rematch"
"""Requests `RematchRequest` to any engine replica."""


def live(table_id: UUID, audience: str) -> str:
    """Live `LiveUpdate` of a table for `seat0` … `seat5` or `public`."""
    return f"gouji.live.{table_id}.{audience}"


def peers(table_id: UUID) -> str:
    """Live `PeerNotice` between the replicas that have streams of a table."""
    return f"gouji.table.{table_id}.peers"


WITNESSES = "gouji.witness.*"
"""The pattern of every `witness`."""


def witness(table_id: UUID) -> str:
    """Live fingerprints of a table's state, `<version> <hash>` as text, for operators alone."""
    return f"gouji.witness.{table_id}"


def fact(table_id: UUID) -> str:
    """Durable `Fact` of a table."""
    return f"gouji.fact.{table_id}"


def match(table_id: UUID) -> str:
    """Durable `MatchFound` for a table to be opened."""
    return f"gouji.match.{table_id}"


def rating(player_id: str) -> str:
    """Durable `RatingChanged` of a player."""
    return f"gouji.rating.{player_id}"
