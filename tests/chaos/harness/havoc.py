"""What goes wrong, when, where and for how long: drawn from a seed before anything starts.

Law: pure. The same seed and faults give the same blows; whether a blow hits something that is hit already is decided
when it falls.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

PAUSE_S = (1.0, 3.5)
"""Between one blow and the next."""


class Fault(StrEnum):
    """The kinds of trouble."""

    KILL = "kill"
    RESTART = "restart"
    STOP = "stop"
    RESET = "reset"
    LOSE = "lose"
    BLACKHOLE = "blackhole"
    LATENCY = "latency"
    SLOWDB = "slowdb"
    CLOCK = "clock"
    FULLDISK = "fulldisk"


MARKS = {
    "engine>nats": b" gouji.fact.",
    "matchmaking>nats": b" gouji.match.",
    "ranking>nats": b" gouji.rating.",
    "ranking>postgres": b"into result",
}
"""By links, without the numbers of who is at their ends: how what is said there begins when a fact is told or counted."""


def mark_of(link: str) -> bytes | None:
    """How one knows on this link that a fact is being told or counted, if that happens there."""
    return MARKS.get("".join(letter for letter in link if not letter.isdigit()))


@dataclass(frozen=True, slots=True)
class Blow:
    """`size` is between 0 and 1: how hard, in the fault's own measure."""

    at_s: float
    fault: Fault
    target: str
    for_s: float
    size: float


@dataclass(frozen=True, slots=True)
class Targets:
    """What can be hit: processes by name, links by name, and which of each are engines and databases."""

    processes: Sequence[str]
    buses: Sequence[str]
    links: Sequence[str]
    database_links: Sequence[str]
    engines: Sequence[str]

    def of(self, fault: Fault) -> Sequence[str]:
        """Where a fault may fall; engines twice as often as others, for the log is theirs."""
        match fault:
            case Fault.KILL:
                return [*self.processes, *self.engines, *self.buses, "postgres"]
            case Fault.RESTART:
                return [*self.processes, *self.engines]
            case Fault.STOP:
                return [*self.processes, *self.engines, *self.buses]
            case Fault.RESET | Fault.BLACKHOLE | Fault.LATENCY:
                return self.links
            case Fault.LOSE:
                return [link for link in self.links if mark_of(link)]
            case Fault.SLOWDB:
                return ["postgres", *self.database_links]
            case Fault.CLOCK:
                return self.engines
            case Fault.FULLDISK:
                return self.buses


# How long each lasts, seconds.
LASTING = {
    Fault.KILL: (0.0, 2.0),
    Fault.RESTART: (0.0, 1.0),
    Fault.STOP: (1.0, 6.0),
    Fault.RESET: (0.0, 1.5),
    Fault.LOSE: (1.0, 6.0),
    Fault.BLACKHOLE: (1.0, 15.0),
    Fault.LATENCY: (2.0, 8.0),
    Fault.SLOWDB: (0.5, 4.0),
    Fault.CLOCK: (2.0, 10.0),
    Fault.FULLDISK: (3.0, 12.0),
}


def blows(seed: int, seconds: float, faults: Sequence[Fault], targets: Targets) -> list[Blow]:
    """Every blow of a run that lasts so long, in order of time."""
    return list(_drawn(random.Random(seed), seconds, faults, targets))


def _drawn(chance: random.Random, seconds: float, faults: Sequence[Fault], targets: Targets) -> Iterator[Blow]:
    at_s = chance.uniform(*PAUSE_S)
    while faults and at_s < seconds:
        fault = chance.choice(faults)
        for_s = min(chance.uniform(*LASTING[fault]), seconds - at_s)
        yield Blow(at_s, fault, chance.choice(targets.of(fault)), for_s, chance.random())
        at_s += chance.uniform(*PAUSE_S)
