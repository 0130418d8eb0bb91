"""What the harness takes for an outcry in a log."""

import json

import pytest

from tests.chaos.harness.outcries import has_given_up_its_start, is_outcry


def start_failed(error: str) -> str:
    trace = f"Traceback (most recent call last):\n  File …\nBusUnavailable: first\n\nand so\n{error}"
    return json.dumps({"event": "start_failed", "level": "critical", "exception": trace, "timestamp": "now"})


@pytest.mark.parametrize(
    "error",
    [
        "engine.runtime.faults.Unavailable: The database cannot be reached.",
        "engine.runtime.bus.BusUnavailable: cannot connect in time",
        "engine.store.port.StoreUnavailable",
    ],
    ids=["database", "bus", "log"],
)
def test_a_start_without_database_or_bus_is_no_outcry(error: str) -> None:
    assert not is_outcry(start_failed(error))


@pytest.mark.parametrize(
    "line",
    [
        start_failed("ValueError: anything else"),
        json.dumps({"event": "task_died", "level": "critical", "exception": "…\nBusUnavailable: lost"}),
        json.dumps({"event": "table quarantined", "level": "error"}),
        "Task exception was never retrieved",
    ],
    ids=["start", "task", "table", "loop"],
)
def test_what_no_outage_explains_is_an_outcry(line: str) -> None:
    assert is_outcry(line)


def test_trouble_that_passes_is_no_outcry() -> None:
    assert not is_outcry(json.dumps({"event": "outbox not swept", "level": "warning", "cause": "BusUnavailable"}))


def test_who_never_came_to_serve_is_ending_by_himself() -> None:
    started, failed, other = (json.dumps({"event": event}) for event in ("started", "start_failed", "stopping"))

    assert has_given_up_its_start([started, other, failed, other])
    assert not has_given_up_its_start([failed, other, started, other])
    assert not has_given_up_its_start([])
