"""The durable streams of the bus: which subjects each keeps, for how long and how much.

Law: values and pure functions. Both adapters of the bus are laid out by this one table. The streams are transport, not
truth: what is older than `max_age` is found in the log alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.runtime import subjects

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Stream:
    """A durable stream: what it keeps at most, and for how many seconds an event id is remembered."""

    name: str
    pattern: str
    max_age: float = 30 * _DAY
    max_bytes: int = 1 << 30
    max_messages: int = 2_000_000
    duplicate_window: float = 600.0


STREAMS = (
    Stream("FACTS", subjects.FACTS),
    Stream("MATCHES", subjects.MATCHES, max_bytes=1 << 28),
    Stream("RATINGS", subjects.RATINGS, max_bytes=1 << 28),
)


def stream_of(subject: str) -> Stream:
    """The stream that keeps this subject or pattern; raises `LookupError` when none does."""
    for stream in STREAMS:
        if matches(stream.pattern, subject):
            return stream
    raise LookupError(f"no stream keeps {subject}")


def matches(pattern: str, subject: str) -> bool:
    """Tell whether the pattern covers the subject (or a narrower pattern)."""
    wanted, given = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        return len(given) > len(wanted) and _covers(wanted, given[: len(wanted)])
    return len(given) == len(wanted) and _covers(wanted, given)


def _covers(wanted: list[str], given: list[str]) -> bool:
    return all(token in ("*", other) for token, other in zip(wanted, given, strict=True))
