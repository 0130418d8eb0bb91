"""The whole installation with one safety taken out at a time, so that the harness is seen to notice."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chaos.harness.checker import Law
from tests.chaos.harness.havoc import Blow, Fault
from tests.chaos.harness.run import Plan, run
from tests.chaos.harness.site import CLIENTS, ENGINES, TABLES

pytestmark = pytest.mark.timeout(400)

NEVER_GIVEN_BACK = LOG_HELD = ANSWERS_LOST = 0.9
"""Sizes of blows."""


@dataclass(frozen=True)
class Sabotage:
    """What is taken out, the blows under which that must show, and as what.

    `tables`: at which is played; `warm_up`: so many answers before the first blow.
    """

    name: str
    found: Law
    blows: Sequence[Blow]
    tables: int = 4
    warm_up: int = 100


SABOTAGES = (
    Sabotage(
        "epoch-check",
        Law.ZOMBIE_WROTE,
        # One engine leads everything when it is stopped, and the log does not take yet what it has sent. The other one
        # takes the tables over; then the log takes what waits.
        [
            Blow(0.0, Fault.BLACKHOLE, "engine2>postgres", 3.9, NEVER_GIVEN_BACK),
            Blow(3.5, Fault.SLOWDB, "postgres", 5.5, LOG_HELD),
            Blow(3.7, Fault.STOP, "engine1", 5.0, 0.0),
        ],
    ),
    Sabotage(
        "expected-sequence brief-memory",
        Law.DOUBLED_FACT,
        [Blow(0.0, Fault.LOSE, f"{engine}>nats", 10.0, 0.0) for engine in ENGINES],
        warm_up=0,
    ),
    Sabotage(
        "command-id",
        Law.REFUSED_YET_STORED,
        [
            Blow(at_s, Fault.RESET, f"{CLIENTS}>{table}", 0.3, ANSWERS_LOST)
            for at_s in (0.0, 1.5, 3.0)
            for table in TABLES
        ],
    ),
    Sabotage(
        "append-before-apply",
        Law.LOST_ACTION,
        [Blow(0.0, Fault.KILL, engine, 0.0, 0.0) for engine in ENGINES],
    ),
    Sabotage(
        "consumer-gate",
        Law.REORDERED_RESULT,
        # The first result of a match is kept from counting, and comes again behind the second one.
        [Blow(0.0, Fault.LOSE, "ranking>postgres", 120.0, 0.0)],
        tables=2,
        warm_up=0,
    ),
)


def plan_of(sabotage: Sabotage) -> Plan:
    return Plan(
        0,
        sabotage.tables,
        seed=3,
        blows=sabotage.blows,
        warm_up=sabotage.warm_up,
        hasty=True,
        finish_s=0,
        settle_s=15,
        sabotage=sabotage.name,
    )


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda sabotage: sabotage.name)
async def test_a_safety_that_is_taken_out_is_missed(folder: Path, sabotage: Sabotage) -> None:
    report = await run(plan_of(sabotage), folder, lambda _: None)

    assert sabotage.found in {violation.law for violation in report.violations}
