"""Who is here: the players who hold a stream of their own seat, on this replica and on its peers.

Law: plain state and one subject between replicas; no stream, no proto. A player whose last stream ends is offline as
soon as the notice arrives; one whose replica dies, when it has been silent for `SILENCE_S`; one whose link dies without
a word, when keepalive has found out and the stream has ended. Nothing here outlives the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from engine.runtime.bus import BusUnavailable, Message
from services.table.wire import Arrival, Notice, Unreadable, notice_bytes, notice_of

BEAT_S = 4.0
"""How often a replica with players at a table tells its peers."""

SILENCE_S = 3 * BEAT_S
"""After how long without a notice a replica's players count as gone; also to itself, for its notices come back to it."""

MOST_PEERS = 256
"""Replicas remembered per table; beyond that newcomers wait until one falls silent."""

_log = structlog.get_logger(__name__)

Publish = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True)
class _Peer:
    players: frozenset[str]
    heard_at: float


@dataclass(slots=True)
class Presence:
    """The presence at one table. Times are seconds of any steady clock.

    `changed` is called when the set of connected players has changed, `arrived` when a peer's notice tells of a
    Play stream; it returns one that the peer should know of instead.
    """

    replica: str
    publish: Publish
    changed: Callable[[], None]
    arrived: Callable[[Arrival], Arrival | None]
    connected: frozenset[str] = frozenset()
    _here: Counter[str] = field(default_factory=Counter)
    _peers: dict[str, _Peer] = field(default_factory=dict)
    _beat_at: float = 0.0
    _unheard_since: float | None = None

    async def enter(self, player_id: str, now: float, arrival: Arrival | None = None) -> None:
        """A stream of this player's own seat begins here; `arrival` if it is to end his older ones elsewhere."""
        self._here[player_id] += 1
        self._recount()
        await self.tell(now, arrival)

    async def leave(self, player_id: str, now: float) -> None:
        """A stream of this player's own seat has ended here."""
        self._here -= Counter((player_id,))
        self._recount()
        if player_id not in self._here:
            await self.tell(now)

    async def tell(self, now: float, arrival: Arrival | None = None) -> None:
        """Send the peers a notice; one that is lost is made good by the next beat."""
        self._beat_at = now + BEAT_S
        self._unheard_since = now if self._unheard_since is None else self._unheard_since
        try:
            await self.publish(notice_bytes(Notice(self.replica, frozenset(self._here), arrival)))
        except BusUnavailable:
            _log.warning("presence_not_told")

    async def hear(self, message: Message, now: float) -> None:
        """Take a peer's notice in, and greet one that was not known."""
        try:
            notice = notice_of(message.payload)
        except Unreadable:
            _log.warning("presence_unreadable")
            return
        if notice.replica == self.replica:
            self._unheard_since = None
            return
        if not self._note(notice, now):
            return
        if notice.arrival is not None and (newer := self.arrived(notice.arrival)):
            await self.tell(now, newer)

    def _note(self, notice: Notice, now: float) -> bool:
        is_new = notice.replica not in self._peers
        if is_new and len(self._peers) >= MOST_PEERS:
            return False
        self._peers[notice.replica] = _Peer(notice.players, now)
        if is_new:
            self._beat_at = now
        self._recount()
        return True

    async def tick(self, now: float) -> None:
        """Forget silent peers and beat when it is time."""
        silent = [name for name, peer in self._peers.items() if now - peer.heard_at > SILENCE_S]
        for name in silent:
            del self._peers[name]
        if silent:
            self._recount()
        if (self._here or self._unheard_since is not None) and now >= self._beat_at:
            await self.tell(now)

    def is_cut_off(self, now: float) -> bool:
        """Whether this replica's own notices have not come back to it for so long that it hears nothing of the table."""
        return self._unheard_since is not None and now - self._unheard_since > SILENCE_S

    def _recount(self) -> None:
        connected = frozenset(self._here).union(*(peer.players for peer in self._peers.values()))
        if connected != self.connected:
            self.connected = connected
            self.changed()
