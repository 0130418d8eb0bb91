"""The chain's layout is a promise to whoever verifies a log without this code."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

from engine.store.chain import chained, first_break, link
from engine.store.port import GENESIS, Append, NewEvent

TABLE = UUID("01932f6e-5a00-7abc-8def-0123456789ab")
COMMAND = UUID("01932f6e-5b00-7abc-8def-0123456789ab")


def test_a_hash_covers_the_documented_bytes() -> None:
    record = (
        b"\x01"
        + TABLE.bytes
        + (7).to_bytes(8, "big")
        + (2).to_bytes(4, "big")
        + (1_790_000_000_000).to_bytes(8, "big")
        + COMMAND.bytes
        + sha256(b"set_laid").digest()
        + sha256("玩家".encode()).digest()
        + sha256(b"").digest()
        + bytes(range(32))
        + sha256(b"payload").digest()
    )

    assert len(record) == 213
    assert (
        link(bytes(range(32)), TABLE, 7, "set_laid", 2, b"payload", "玩家", COMMAND, "", 1_790_000_000_000)
        == sha256(record).digest()
    )


def test_the_hash_of_a_known_event_never_changes() -> None:
    append = Append(TABLE, 0, 1, COMMAND, "player-1", 1_790_000_000_000, (NewEvent("set_laid", 1, b"payload"),))

    (event,) = chained(append, GENESIS)

    assert event.hash.hex() == "a5e58ea6a28baaeec17b9767ffa75976d96b4c70a0cfc94dd0bda1a8da1e64cc"


def test_a_missing_a_doubled_and_a_swapped_event_break_the_chain() -> None:
    events = chained(
        Append(TABLE, 0, 1, COMMAND, "p", 1, tuple(NewEvent("t", 1, b"%d" % n) for n in range(5))), GENESIS
    )

    assert first_break(events) is None
    assert first_break(()) is None
    assert first_break(events[1:]) == 1
    assert first_break((*events[:2], *events[3:])) == 3
    assert first_break((*events[:2], events[1], *events[2:])) == 3
    assert first_break((events[0], events[2], events[1], *events[3:])) == 2
