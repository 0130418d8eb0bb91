"""Leases of shards in Postgres: a row for each shard, the database's clock, a new epoch with every acquisition.

Law: each round is one statement, so that a lost connection leaves either the old state or the new one.
"""

from __future__ import annotations

from engine.store import sql
from engine.store.port import Lease, Leases
from engine.store.sessions import Sessions


class ShardLeases:
    """The lease table; remembers what each owner of this process held, to tell what was lost."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._held: dict[str, frozenset[Lease]] = {}

    async def keep(self, owner: str, want: int, ttl_ms: int) -> Leases:
        """Renew, let go of what is over the fair share, take free or expired shards up to it.

        Gives up after half a lease, so that an owner learns in time that he cannot renew.
        """
        wanted = {"owner": owner, "want": want, "ttl_ms": ttl_ms}
        rows = await self._sessions.rows(sql.KEEP_LEASES, wanted, patience_s=ttl_ms / 2000)
        held = tuple(Lease(shard, owner, epoch) for *_, shard, epoch in rows if shard is not None)
        lost = self._held.get(owner, frozenset()).difference(held)
        self._held[owner] = frozenset(held)
        owners, next_end_ms, *_ = rows[0]
        return Leases(held, owners, tuple(sorted(lease.shard for lease in lost)), next_end_ms)

    async def release(self, owner: str) -> None:
        """Give up all shards of this owner at once."""
        self._held.pop(owner, None)
        await self._sessions.rows(sql.RELEASE_LEASES, {"owner": owner})

    async def leader(self, shard: int) -> str | None:
        """Who leads this shard now."""
        rows = await self._sessions.rows(sql.LEADER, {"shard": shard})
        return rows[0][0] if rows else None
