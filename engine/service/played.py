"""A played deal as text: the statements of its header and body, read and written by the same tables.

Law: text to values and back, for `export` and `verifier` alike (docs/notation.md, "A played deal"). Nothing here decides,
folds or hashes. What is read may come from anybody: everything that is not understood is `NotPlayed`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote, unquote
from uuid import UUID

from engine.match import SEATS, Command
from engine.match import commands as at_table
from engine.rules import commands as in_deal
from engine.rules.cards import LETTERS, NO_CARDS, text
from engine.rules.notation import action
from engine.rules.variant import SWITCHES, Variant, resolve, switch_text

FORMAT = 1
HASH_DIGITS = 16
"""How much of an event's hash stands beside its line."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAFE = "-_.:@+"
_MOST = 1000
_LAST_VERSION = (1 << 63) - 1
_DIGEST_BYTES = 32


class NotPlayed(ValueError):
    """The text is not the record of a played deal; the message says why."""


class Mark(NamedTuple):
    """What stands in the comment behind an event's line: what the hash chain needs, and the beginning of its hash."""

    version: int
    at_ms: int
    actor: str
    command_id: UUID
    trace_id: str
    hash: str


class Sealed(NamedTuple):
    """An event that belongs to the next deal: its type, and the SHA-256 of a payload that is not shown yet."""

    type: str
    digest: bytes


class Follows(NamedTuple):
    """An event that the command above it produced, beside the first one."""

    type: str


class Starts(NamedTuple):
    """The deal's start; what it carries stands in the header."""


Statement = Command | Sealed | Follows | Starts


def quoted(free: str) -> str:
    """A free text as one word."""
    return quote(free, safe=_SAFE) or "-"


def unquoted(word: str) -> str:
    """The free text that this word stands for."""
    return "" if word == "-" else unquote(word)


def time_text(at_ms: int) -> str:
    """A moment in UTC, to the millisecond: `2026-11-30T11:00:09.123Z`."""
    return f"{(_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"


def read_time(word: str) -> int:
    """The moment that this word stands for, Unix milliseconds."""
    at_ms = (datetime.fromisoformat(word) - _EPOCH) // timedelta(milliseconds=1)
    if at_ms < 0:
        raise NotPlayed("before there was Unix time")
    return at_ms


def variant_text(variant: Variant) -> str:
    """A variant with all its switches."""
    return " ".join((variant.key, *(f"{name}={switch_text(variant, name)}" for name in SWITCHES)))


def read_variant(words: list[str]) -> Variant:
    """The variant that these words stand for."""
    key, *switches = words
    return resolve(key, dict(_switch(word) for word in switches))


def _switch(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value


def _ranks_text(ranks: tuple[int, ...]) -> str:
    return "".join(LETTERS[rank] for rank in ranks)


def _rank_text(rank: int) -> str:
    return LETTERS[rank]


def read_digest(word: str) -> bytes:
    """The SHA-256 that these hex digits are."""
    digest = bytes.fromhex(word)
    if len(digest) != _DIGEST_BYTES:
        raise NotPlayed("a digest has 32 bytes")
    return digest


def _counted(word: str) -> int:
    version = int(word)
    if not 0 < version <= _LAST_VERSION:
        raise NotPlayed("versions count from 1")
    return version


def read_seat(word: str) -> int:
    """The seat that this word stands for."""
    return SEATS.index(int(word))


def read_amount(word: str) -> int:
    """A number of cards, points or deals that a record may hold."""
    amount = int(word)
    if not 0 <= amount <= _MOST:
        raise NotPlayed(f"too large a number: {amount}")
    return amount


_WRITTEN: dict[str, Callable[[Any], str]] = {
    "cards": text,
    "of": str,
    "player": quoted,
    "points": str,
    "rank": _rank_text,
    "ranks": _ranks_text,
    "reason": quoted,
    "teammate": str,
    "to": str,
    "until_ms": time_text,
}
_SEAT_WORDS: dict[type[Any], str] = {
    in_deal.Pass: "pass",
    in_deal.Cover: "cover",
    in_deal.Yield: "yield",
    in_deal.Burn: "burn",
    in_deal.Decline: "decline",
    in_deal.Apply: "apply",
    in_deal.Agree: "agree",
    in_deal.Refuse: "refuse",
    in_deal.Revolt: "revolt",
    in_deal.Stay: "stay",
    in_deal.Renounce: "renounce",
    in_deal.Declare: "declare",
    in_deal.Silent: "silent",
    in_deal.Buy: "buy",
    in_deal.No: "no",
    in_deal.Discard: "discard",
    in_deal.Keep: "keep",
    in_deal.Return: "return",
    in_deal.Consult: "consult",
    in_deal.Suggest: "suggest",
    in_deal.HandOver: "hand_over",
    in_deal.Order: "order",
    in_deal.Swap: "swap",
    in_deal.Ask: "ask",
    in_deal.TimeOut: "timeout",
    in_deal.Warn: "warn",
    in_deal.Forfeit: "forfeit",
    in_deal.Dock: "dock",
    in_deal.JudgeLast: "last",
    in_deal.Disqualify: "disqualify",
    at_table.Substitute: "substitute",
}
_TABLE_WORDS: dict[type[Any], str] = {
    at_table.CallDeal: "call",
    at_table.CloseTable: "close",
    at_table.ExtendDeadline: "extend",
    at_table.LeaveSeat: "leave",
}
_PENALTIES = {_SEAT_WORDS[made] for made in (in_deal.Warn, in_deal.Forfeit, in_deal.JudgeLast, in_deal.Disqualify)}


def statement_text(statement: Any) -> str:
    """A statement of the body, without its mark. A seat's own commands are given with their seat."""
    match statement:
        case Starts():
            return "start"
        case Follows(type_):
            return f"= log {type_}"
        case Sealed(type_, digest):
            return f"sealed {type_} {digest.hex()}"
        case in_deal.Lay(seat, cards):
            return f"{seat} {text(cards) or '-'}"
        case in_deal.Order(seat, sets):
            return " ".join((f"{seat} order", *map(text, sets)))
        case at_table.TakeSeat(player, seat):
            return f"take {seat} {quoted(player)}"
        case _:
            return _words_text(statement)


def _words_text(statement: Any) -> str:
    made = type(statement)
    lead = (str(statement.seat), _SEAT_WORDS[made]) if made in _SEAT_WORDS else (_TABLE_WORDS[made],)
    names = (one.name for one in fields(made) if one.name != "seat")
    return " ".join((*lead, *(_WRITTEN[name](getattr(statement, name)) for name in names)))


def read_statement(words: list[str]) -> Any:
    """The statement that these words stand for; raises `NotPlayed`."""
    try:
        return _at_a_seat(words) if words[0].isdecimal() else _at_the_table(words)
    except (ValueError, IndexError) as error:
        raise NotPlayed(f"not a statement of a played deal: {' '.join(words)}") from error


def _at_a_seat(words: list[str]) -> Any:
    seat, (verb, *rest) = read_seat(words[0]), words[1:]
    match rest:
        case [] if verb == "-":
            return in_deal.Lay(seat, NO_CARDS)
        case [player] if verb == "substitute":
            return at_table.Substitute(seat, unquoted(player))
        case [reason] if verb in _PENALTIES:
            return _for_a_reason(action(seat, (verb,), 0), reason)
        case [points, reason] if verb == "dock":
            return _for_a_reason(action(seat, (verb, points), 0), reason)
        case _:
            return action(seat, (verb, *rest), 0)


def _for_a_reason(command: Any, reason: str) -> Any:
    return replace(command, reason=unquoted(reason))


def _at_the_table(words: list[str]) -> Any:
    match words:
        case ["start"]:
            return Starts()
        case ["=", "log", type_]:
            return Follows(type_)
        case ["sealed", type_, digest]:
            return Sealed(type_, read_digest(digest))
        case ["take", seat, player]:
            return _take(read_seat(seat), unquoted(player))
        case ["leave", player]:
            return at_table.LeaveSeat(unquoted(player))
        case ["call"]:
            return at_table.CallDeal()
        case ["close", reason]:
            return at_table.CloseTable(unquoted(reason))
        case ["extend", time]:
            return at_table.ExtendDeadline(read_time(time))
        case _:
            raise NotPlayed("an unknown statement")


def _take(seat: int, player: str) -> at_table.TakeSeat:
    return at_table.TakeSeat(player, seat, draw=(seat, *(one for one in SEATS if one != seat)))


def mark_text(mark: Mark) -> str:
    """The comment behind an event's line."""
    return (
        f"# @{mark.version} {time_text(mark.at_ms)} by={quoted(mark.actor)} command={mark.command_id} "
        f"trace={quoted(mark.trace_id)} hash={mark.hash}"
    )


def read_mark(comment: str) -> Mark:
    """What an event's comment says; raises `NotPlayed`."""
    try:
        at, time, actor, command, trace, digest = comment.split()
        return Mark(
            _counted(at.removeprefix("@")),
            read_time(time),
            unquoted(actor.removeprefix("by=")),
            UUID(command.removeprefix("command=")),
            unquoted(trace.removeprefix("trace=")),
            digest.removeprefix("hash="),
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise NotPlayed(f"not the mark of an event: {comment}") from error
