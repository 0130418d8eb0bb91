"""The whole installation under blows."""

from pathlib import Path

import pytest

from tests.chaos.harness.havoc import Fault, blows
from tests.chaos.harness.run import Plan, run
from tests.chaos.harness.site import TARGETS

pytestmark = pytest.mark.timeout(400)


async def test_nothing_is_lost_doubled_shown_early_or_left_stuck_whatever_is_broken(folder: Path) -> None:
    plan = Plan(seconds=90, tables=6, seed=7, finish_s=40, settle_s=30)

    report = await run(plan, folder, lambda _: None)

    assert report.violations == []
    assert report.fallen.keys() == set(Fault)
    assert report.finished >= 3
    assert report.acknowledged > 600
    assert report.shown > 4000
    assert report.witnessed > 600


def test_the_same_seed_gives_the_same_blows() -> None:
    one, same, other = (blows(seed, 60, tuple(Fault), TARGETS) for seed in (1, 1, 2))

    assert one == same != other
    assert {blow.fault for blow in blows(1, 600, tuple(Fault), TARGETS)} == set(Fault)
    assert all(blow.at_s + blow.for_s <= 60 for blow in one)
