"""A table with its log, driven by commands, without a store: for tests that need a stream as the engine writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from uuid import UUID

from engine import match as table
from engine import rules
from engine.match import Match
from engine.rules.commands import SeatCommand, TimeOut
from engine.rules.variant import VARIANTS, Variant
from engine.service import codec
from engine.service.dealer import Dealer
from engine.store.chain import chained
from engine.store.port import GENESIS, Append, StoredEvent

TABLE_ID = UUID("01939c2e-0000-7000-8000-000000000001")
PLAYERS = ("ann", "ben", "cem", "dua", "eve", "fay")


def entropy(seed: str) -> Callable[[int], bytes]:
    """Bytes that look random and are the same in every run."""
    blocks = _blocks(seed)
    return lambda size: b"".join(next(blocks) for _ in range(-(-size // 32)))[:size]


def _blocks(seed: str) -> Iterator[bytes]:
    number = 0
    while True:
        yield sha256(f"{seed}/{number}".encode()).digest()
        number += 1


class LoggedTable:
    """Does what the engine does at one table: decides, lets the house follow up, logs. Time is the log's length."""

    def __init__(self, chance: str = "a table") -> None:
        self.match: Match = table.EMPTY
        self.log: list[StoredEvent] = []
        self.dealer = Dealer(entropy(chance))
        self.snapshots: list[Match] = []

    @classmethod
    def seated(cls, variant: Variant | str = "qingdao-charter", *, chance: str = "a table") -> LoggedTable:
        """A table with six players and a first deal running."""
        opened = cls(chance)
        resolved = VARIANTS[variant] if isinstance(variant, str) else variant
        opened.accepts(table.OpenTable(resolved, players=PLAYERS))
        opened.everybody_ready()
        return opened

    def does(self, command: table.Command, actor: str = "house") -> table.Decision:
        """The decision on a command; its events are logged together with what the house does about them."""
        decision = table.decide(self.match, command)
        if isinstance(decision, table.Refused | rules.Refused):
            return decision
        self._log([*self._folded(decision), *self._followed_up()], actor)
        return decision

    def accepts(self, command: table.Command, actor: str = "house") -> tuple[table.Event, ...]:
        """The events of a command that must be accepted."""
        decision = self.does(command, actor)
        assert not isinstance(decision, table.Refused | rules.Refused), (command, decision)
        return decision

    def refuses(self, command: table.Command) -> str:
        """The name of the reason for which a command must be refused; nothing may change."""
        before = self.match
        decision = self.does(command)
        assert isinstance(decision, table.Refused | rules.Refused), (command, decision)
        assert self.match == before
        return decision.reason.name

    def plays(self, seat: int, command: SeatCommand) -> table.Decision:
        """The decision on an action of the player in this seat."""
        return self.does(table.Play(self.match.players[seat], command), self.match.players[seat])

    def everybody_ready(self) -> None:
        """All six want the next deal, each with a contribution."""
        for seat, player in enumerate(self.match.players):
            self.accepts(table.SetReady(player, ready=True, contribution=f"{seat:02x}ff"), player)

    def time_passes(self) -> None:
        """The deadline fires."""
        for command in table.due(self.match):
            if not isinstance(command, TimeOut) or command.seat in rules.waiting(self._deal()):
                self.accepts(command)

    def plays_itself_out(self) -> None:
        """Nobody acts until the running deal is over."""
        while self.match.phase is table.Phase.PLAYING:
            self.time_passes()

    def _deal(self) -> rules.Deal:
        assert self.match.deal is not None
        return self.match.deal

    def _folded(self, events: tuple[table.Event, ...]) -> tuple[table.Event, ...]:
        self.match = table.fold(self.match, events)
        return events

    def _followed_up(self) -> Iterator[table.Event]:
        while (command := self._follow_up()) is not None:
            decision = table.decide(self.match, command)
            assert not isinstance(decision, table.Refused | rules.Refused), decision
            yield from self._folded(decision)

    def _follow_up(self) -> table.Command | None:
        if table.wants_commitment(self.match):
            return self.dealer.commit(TABLE_ID, self.match)
        if table.wants_deal(self.match):
            return self.dealer.deal(TABLE_ID, self.match)
        return None

    def _log(self, events: list[table.Event], actor: str) -> None:
        version = len(self.log)
        append = Append(
            table_id=TABLE_ID,
            expected_version=version,
            epoch=1,
            command_id=UUID(int=version + 1),
            actor=actor,
            at_ms=1_790_000_000_000 + 250 * version,
            events=tuple(map(codec.encode, events)),
            trace_id="trace" if version % 2 else "",
        )
        self.log.extend(chained(append, self.log[-1].hash if self.log else GENESIS))
