"""The whole installation under blows, and installations that lie, so that the harness is seen to notice."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.harness.checker import Law
from tests.chaos.harness.havoc import Blow, Fault, blows
from tests.chaos.harness.run import Plan, Report, run
from tests.chaos.harness.site import TARGETS

pytestmark = pytest.mark.timeout(400)

SABOTAGED = "tests.chaos.harness.sabotaged_engine"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the database's own account can enter too."""
    folder = Path(tempfile.mkdtemp(prefix="gouji-chaos-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


async def run_in(folder: Path, plan: Plan) -> Report:
    return await run(plan, folder, lambda _: None)


async def test_nothing_is_lost_doubled_shown_early_or_left_stuck_whatever_is_broken(folder: Path) -> None:
    report = await run_in(folder, Plan(seconds=45, tables=6, seed=7))

    assert report.violations == []
    assert sum(report.fallen.values()) >= 10
    assert report.finished >= 3
    assert report.acknowledged > 300
    assert report.shown > 2000
    assert report.witnessed > 300


async def test_an_engine_that_answers_before_it_stores_and_publishes_twice_is_found_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOUJI_SABOTAGE", "hasty careless")
    kills = [Blow(5 + 2 * number, Fault.KILL, f"engine{1 + number % 2}", 0.5, 0.0) for number in range(6)]
    plan = Plan(seconds=17, tables=4, seed=3, blows=kills, finish_s=3, settle_s=1, engine_module=SABOTAGED)

    report = await run_in(folder, plan)

    found = {violation.law for violation in report.violations}
    assert found >= {Law.LOST_ACTION, Law.UNSTORED_SHOWN, Law.DOUBLED_FACT}


def test_the_same_seed_gives_the_same_blows() -> None:
    one, same, other = (blows(seed, 60, tuple(Fault), TARGETS) for seed in (1, 1, 2))

    assert one == same != other
    assert {blow.fault for blow in blows(1, 600, tuple(Fault), TARGETS)} == set(Fault)
    assert all(blow.at_s + blow.for_s <= 60 for blow in one)
