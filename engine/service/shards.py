"""Which shards this replica leads, and since which epoch.

Law: a shard is led only while its lease is alive by this process's own monotonic clock, counted from before the store
was asked: a process that was paused beyond its lease leads nothing the moment it wakes up. What leading means (serving
requests, deadlines, tables) is told to the followers; this file knows none of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from engine.runtime.bell import Bell
from engine.runtime.clock import Clock
from engine.store.port import EventStore, Lease, StoreUnavailable

_log = structlog.get_logger(__name__)


async def _nobody() -> None:
    """There are no others."""


def _always() -> bool:
    """Nothing is in the way."""
    return True


class Follower(Protocol):
    """Something that works for the shards that are led."""

    def gained(self, shards: Collection[int]) -> None:
        """Begin to work for these shards."""
        ...

    def lost(self, shards: Collection[int]) -> None:
        """Let go of these shards at once."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How leases are kept: `ttl_ms` long, renewed every `renew_ms`, at most `want` shards for one replica."""

    ttl_ms: int = 6000
    renew_ms: int = 2000
    want: int = 256


class Term(Protocol):
    """The time for which this replica leads a shard."""

    @property
    def epoch(self) -> int:
        """The number of the term; later terms have higher ones."""
        ...

    def lasts(self) -> bool:
        """Whether the shard is still led in this term."""
        ...

    def steady_since_ms(self) -> int:
        """Since when, Unix milliseconds, this replica has led the shard and reached store and bus without a break."""
        ...


class _Term:
    """A term, as its replica's leases tell."""

    def __init__(self, shards: Shards, shard: int, epoch: int, began_at_ms: int) -> None:
        self.epoch = epoch
        self._shards = shards
        self._shard = shard
        self._began_at_ms = began_at_ms

    def lasts(self) -> bool:
        return self._shards.term(self._shard) is self

    def steady_since_ms(self) -> int:
        return max(self._began_at_ms, self._shards.troubled_at_ms)


class Shards:
    """The leases of one replica. `tell_others`: shards are free, let them look.

    `troubled_at_ms`: when the store or the bus was last out of reach, Unix milliseconds.
    """

    def __init__(
        self,
        store: EventStore,
        clock: Clock,
        owner: str,
        terms: LeaseTerms,
        tell_others: Callable[[], Awaitable[None]] = _nobody,
    ) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._terms = terms
        self._tell_others = tell_others
        self._held: dict[int, _Term] = {}
        self.troubled_at_ms = 0
        self._until = 0.0
        self._followers: Sequence[Follower] = ()
        self._stopping = False
        self._bell = Bell(terms.renew_ms / 1000)
        self._next_end_ms: int | None = None
        self._round = asyncio.Lock()
        self._owners = 1
        self._is_heard: Callable[[], bool] = _always

    def lead_only_while(self, is_heard: Callable[[], bool]) -> None:
        """Leave the shards to other replicas, if there are any, whenever this does not hold."""
        self._is_heard = is_heard

    def follow(self, followers: Sequence[Follower]) -> None:
        """Tell these, in this order, of every shard gained; in reverse order of every shard lost."""
        self._followers = tuple(followers)

    def term(self, shard: int) -> Term | None:
        """The term in which this replica leads the shard now; None when it does not."""
        return self._held.get(shard) if self._clock.monotonic() < self._until else None

    def held(self) -> tuple[int, ...]:
        """The shards that are led now."""
        return tuple(self._held) if self._clock.monotonic() < self._until else ()

    async def run(self) -> None:
        """Keep the leases until `release`; look again the moment a lease of another runs out that was not renewed."""
        while not self._stopping:
            await self.keep()
            await self._bell.sleep(None if self._next_end_ms is None else self._next_end_ms / 1000)

    def trouble(self) -> None:
        """The store or the bus is out of reach now: no term is steady before this moment."""
        self.troubled_at_ms = self._clock.now_ms()

    def look(self) -> None:
        """Shards may be free: do not wait for the next round."""
        self._bell.ring()

    async def keep(self) -> None:
        """One round: renew, let go, take; or let everything go when the leases have run out."""
        async with self._round:
            await self._keep()

    async def _keep(self) -> None:
        if self._owners > 1 and not self._is_heard():
            await self._step_aside()
            return
        asked_at = self._clock.monotonic()
        try:
            leases = await self._store.keep_leases(self._owner, self._terms.want, self._terms.ttl_ms)
        except StoreUnavailable:
            self.trouble()
            self._next_end_ms = None
            _log.warning("leases not renewed", owner=self._owner)
            if self._clock.monotonic() >= self._until:
                self._lose(tuple(self._held))
            return
        self._next_end_ms = leases.next_end_ms
        self._owners = leases.owners
        await self._settle(leases.held, asked_at)
        if leases.lost:
            await self._tell_others()

    async def release(self) -> None:
        """A clean stop: stop leading, then give the leases up, so that others take over at once."""
        self._stopping = True
        self._bell.ring()
        async with self._round:
            await self._give_up()

    async def _step_aside(self) -> None:
        """Nobody reaches this replica: others can serve its shards, until it is heard again."""
        self._next_end_ms = None
        if self._held:
            _log.warning("not heard, stepping aside", owner=self._owner)
            await self._give_up()

    async def _give_up(self) -> None:
        self._lose(tuple(self._held))
        try:
            await self._store.release_leases(self._owner)
        except StoreUnavailable:
            _log.warning("leases not released", owner=self._owner)
        else:
            await self._tell_others()

    async def _settle(self, held: Sequence[Lease], asked_at: float) -> None:
        now = {lease.shard: lease.epoch for lease in held}
        self._lose([shard for shard, term in self._held.items() if now.get(shard) != term.epoch])
        self._until = asked_at + self._terms.ttl_ms / 1000
        if not self._stopping:
            self._gain({shard: epoch for shard, epoch in now.items() if shard not in self._held})

    def _gain(self, epochs: dict[int, int]) -> None:
        if not epochs:
            return
        began_at_ms = self._clock.now_ms()
        self._held.update({shard: _Term(self, shard, epoch, began_at_ms) for shard, epoch in epochs.items()})
        for follower in self._followers:
            follower.gained(epochs.keys())
        _log.info("shards gained", shards=len(epochs), held=len(self._held))

    def _lose(self, shards: Sequence[int]) -> None:
        if not shards:
            return
        for shard in shards:
            self._held.pop(shard, None)
        for follower in reversed(self._followers):
            follower.lost(frozenset(shards))
        _log.info("shards lost", shards=len(shards), held=len(self._held))
