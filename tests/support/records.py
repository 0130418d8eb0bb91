"""Recorded matches: the logs of whole matches, kept with the tests, and what must always follow from them.

    python -m tests.support.records record   add the matches that the present rule book's folder lacks
    python -m tests.support.records restate  write the fingerprints anew, after the shape of the state has changed
    python -m tests.support.records replay   print the last fingerprint of each, as this process finds it

Law: a record is a promise to everybody whose match is in a log. `record` never overwrites one; a file may be deleted and
made again only while no release has stored events of its shape. What is recorded under a rule book stays in that rule
book's folder for ever. `restate` keeps every event as it is and refuses a record that the rules would not write again.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from engine import match as table
from engine.match import Event, Match, Seating
from engine.match import events as at_table
from engine.rules.commands import Agree, Disqualify, Dock, Revolt, Stay, Swap, Warn
from engine.rules.variant import RULE_BOOK, VARIANTS, Variant, resolve
from engine.service import codec
from engine.service.causes import cause, decided
from engine.service.export import export
from engine.store.chain import chained
from engine.store.port import GENESIS, Append, NewEvent, StoredEvent
from tests.support.players import play_out
from tests.support.tables import PLAYERS, TABLE_ID, LoggedTable

FOLDER = Path(__file__).parents[1] / "golden" / "matches"
RECORDED_DEAL = 1
"""The deal of each match that is also kept as a played deal."""

_LOG, _DEAL = ".log.gz", ".gouji.gz"
_SHORT = 8
"""Hex digits of the fingerprint kept for each version; the whole ones are in the digest at the end."""

_CHANCE = {
    "qingdao-charter": 3,
    "qingdao-letter": 1,
    "qingdao-full": 8,
    "shandong": 3,
    "barracks": 6,
    "jinan": 7,
    "unusual": 5,
    "unheard-of": 9,
}
"""Of the first dozen the one that shows the most kinds of events that others do not."""

UNUSUAL = {
    "unusual": {
        "kill_big": "two_big",
        "comparison": "joker_first",
        "parting_gouji": "once",
        "play_out": "five_out",
        "windfall_application": "yes",
        "swap_last": "yes",
        "discard": "(3,4)",
        "tribute": "yes",
        "return_point": "yes",
        "declare": "charter",
        "opening": "charter",
    },
    "unheard-of": {
        "advice": "order",
        "report": "on_request",
        "illegal_play": "lose_turn",
        "decline_is_pass": "yes",
        "burn_check": "bluff",
        "counter_burn": "victim",
        "last_word": "unless_passed",
        "windfall": "teammate",
        "buy": "(4)",
        "swap_last": "yes",
        "tribute": "yes",
        "teammate_tribute": "yes",
        "overturn": "double",
        "sweep_tribute": "finish",
        "smother_is_last": "yes",
        "threes_last": "yes",
        "next_lead": "rotate",
    },
}
"""Switches that no named variant has together."""


class DecidedOtherwise(Exception):
    """The rules make other events of a command than the log holds."""


class Record(NamedTuple):
    """A stored log, the short fingerprint of the state after each event, and the digest of all whole fingerprints."""

    events: tuple[StoredEvent, ...]
    short: tuple[str, ...]
    digest: str


def matches() -> dict[str, Callable[[], LoggedTable]]:
    """What is recorded, by name: each named variant, unusual ones, and a deal that is void."""
    two = {"match_deals": "2"}
    variants = {key: resolve(key, two) for key in VARIANTS}
    variants |= {key: resolve("qingdao-charter", switches | two) for key, switches in UNUSUAL.items()}
    return {**{key: partial(_play, key, variant) for key, variant in variants.items()}, "revolution": _revolution}


def logs(folder: str = "*") -> list[Path]:
    """The records of these rule books."""
    return sorted(FOLDER.glob(f"{folder}/*{_LOG}"))


def played_deals(folder: str = "*") -> list[Path]:
    """The played deals that are kept of these rule books."""
    return sorted(FOLDER.glob(f"{folder}/*{_DEAL}"))


def read_text(path: Path) -> str:
    """What a file of the folder says."""
    return gzip.decompress(path.read_bytes()).decode()


def read(path: Path) -> Record:
    """A record as it was written."""
    *lines, last = read_text(path).splitlines()
    events: list[StoredEvent] = []
    for command_id, rows in groupby((line.split() for line in lines), key=lambda row: row[1]):
        events += chained(_append(len(events), UUID(command_id), list(rows)), events[-1].hash if events else GENESIS)
    digest, head = last.split()
    assert head == events[-1].hash.hex(), "the hash chain does not end where it ended"
    return Record(tuple(events), tuple(line.split()[0] for line in lines), digest)


def _append(version: int, command_id: UUID, rows: list[list[str]]) -> Append:
    _, _, at_ms, actor, trace_id, *_ = rows[0]
    return Append(
        table_id=TABLE_ID,
        expected_version=version,
        epoch=1,
        command_id=command_id,
        actor=actor,
        at_ms=int(at_ms),
        events=tuple(NewEvent(row[5], int(row[6]), bytes.fromhex(row[7].strip("-"))) for row in rows),
        trace_id=trace_id.strip("-"),
    )


def text_of(events: Sequence[StoredEvent]) -> str:
    """A log as it is kept: one line per event, then the digest of all fingerprints and the hash of the last event."""
    found = list(fingerprints(events))
    lines = [_line(stored, whole[:_SHORT]) for stored, whole in zip(events, found, strict=True)]
    return "\n".join((*lines, f"{digest_of(found)} {events[-1].hash.hex()}\n"))


def _line(stored: StoredEvent, short: str) -> str:
    who = (stored.command_id, stored.at_ms, stored.actor, stored.trace_id or "-")
    return " ".join(map(str, (short, *who, stored.type, stored.schema, stored.payload.hex() or "-")))


def decoded(events: Sequence[StoredEvent]) -> tuple[Event, ...]:
    """The events that were stored."""
    return tuple(codec.decode(stored.type, stored.schema, stored.payload) for stored in events)


def fingerprints(events: Sequence[StoredEvent]) -> Iterator[str]:
    """The state's fingerprint after each event."""
    match: Match = table.EMPTY
    for event in decoded(events):
        match = table.evolve(match, event)
        yield codec.state_hash(match)


def digest_of(whole: Sequence[str]) -> str:
    """One digest for all fingerprints."""
    return sha256("\n".join(whole).encode()).hexdigest()


def decided_again(events: Sequence[Event]) -> Match:
    """The match that is played when every command of the log is given once more. Raises `NoCause` or `DecidedOtherwise`."""
    match: Match = table.EMPTY
    at = 0
    while at < len(events):
        command = _said(match, events[at])
        size = cause(match, events[at:])[1] if command is None else len(made := decided(match, command))
        if command is not None and made != tuple(events[at : at + size]):
            raise DecidedOtherwise(f"version {at + 1}")
        match = table.fold(match, events[at : at + size])
        at += size
    return match


def _said(match: Match, event: Event) -> table.Command | None:
    match event:
        # Commands that say all of what happened, which a played deal seals or takes for given.
        case at_table.TableOpened(variant, seating, ranked, players):
            return table.OpenTable(variant, seating, players if any(players) else (), ranked)
        case at_table.SeedCommitted(_, commitment, seed):
            return table.CommitSeed(seed or "", commitment)
        case at_table.ReadyChanged(seat, ready, contribution):
            return table.SetReady(match.players[seat], ready, contribution or "")
        case at_table.DealStarted(deck=deck, random_seat=random_seat) if deck is not None:
            return table.StartDeal(deck, random_seat)
        case _:
            return None


def _play(key: str, variant: Variant) -> LoggedTable:
    """A match of two deals of careless players, with everything that may befall a table."""
    chance = f"{key} {_CHANCE.get(key, 0)}"
    made = LoggedTable(chance)
    _sit_down(made, variant)
    made.everybody_ready()
    play_out(made, f"{chance} 1")
    _between_deals(made)
    made.time_passes()
    _lose_a_player(made)
    play_out(made, f"{chance} 2")
    return made


def _revolution() -> LoggedTable:
    """Two revolt and the deal is void; then one does; then the house closes the table in the middle of a deal."""
    made = LoggedTable.seated(resolve("shandong", {"deck": "{2:16,s:4,b:4}", "buy": "()", "threes_last": "no"}))
    for revolters in ((0, 1), (3,)):
        for seat in table.SEATS:
            made.plays(seat, (Revolt if seat in revolters else Stay)(seat))
        if made.match.phase is table.Phase.PLAYING:
            play_out(made, "revolution")
        made.everybody_ready()
    made.time_passes()
    made.accepts(table.CloseTable("a storm; the house is down"), "admin")
    return made


def _sit_down(made: LoggedTable, variant: Variant) -> None:
    seating = list(Seating)[len(variant.key) % 3]
    made.accepts(table.OpenTable(variant, seating), "service")
    for seat, player in enumerate(PLAYERS):
        made.accepts(table.TakeSeat(player, seat, draw=(4, 1, 5, 0, 2, 3)), player)
    made.accepts(table.SetReady("ann", ready=True, contribution="0a"), "ann")
    made.accepts(table.LeaveSeat("ann"), "ann")
    made.accepts(table.TakeSeat("ann", table.SEATS[0], draw=(0, 1, 2, 3, 4, 5)), "ann")


def _between_deals(made: LoggedTable) -> None:
    """Penalties, a swap of places where the variant has it, a new player, a house that was down, a late table."""
    *_, fifth, last = made.match.places
    made.plays(last, Swap(last))
    made.plays(fifth, Agree(fifth))
    made.accepts(Warn(2, "talks"), "admin")
    made.accepts(Dock(3, 2, "signals"), "admin")
    made.accepts(Disqualify(made.match.places[0], "counts cards"), "admin")
    made.accepts(table.Substitute(made.match.places[0], "gus"), "admin")
    made.accepts(table.ExtendDeadline(1_790_000_500_000))
    for seat in range(5):
        made.accepts(table.SetReady(made.match.players[seat], ready=True, contribution=f"{seat}b"), "service")
    made.accepts(table.CallDeal())


def _lose_a_player(made: LoggedTable) -> None:
    """Somebody is disqualified in the middle of a deal, and after a while somebody else plays on for him."""
    made.accepts(Disqualify(4, "walked away"), "admin")
    made.time_passes()
    made.accepts(table.Substitute(4, "hal"), "admin")


def _record() -> None:
    for key, play in matches().items():
        log, deal = (FOLDER / RULE_BOOK / f"{key}{ending}" for ending in (_LOG, _DEAL))
        if not log.exists():
            made = play()
            _write(log, text_of(made.log))
            _write(deal, export(made.log, RECORDED_DEAL))


def _restate() -> None:
    for path in logs(RULE_BOOK):
        events = read(path).events
        decided_again(decoded(events))
        _write(path, text_of(events))


def _replay() -> None:
    for path in logs(RULE_BOOK):
        events = read(path).events
        match = decided_again(decoded(events))
        sys.stdout.write(f"{path.name} {codec.state_hash(match)}\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


_WISHES: dict[str, Callable[[], None]] = {"record": _record, "restate": _restate, "replay": _replay}

if __name__ == "__main__":
    _WISHES[sys.argv[1]]()
