"""Limits: how much, from whom."""

from __future__ import annotations

import ipaddress

import pytest

from engine.runtime import limits
from engine.runtime.addresses import caller_address
from engine.runtime.faults import Busy
from engine.runtime.limits import Meter, Rate


class Hands:
    """A clock's hands, moved by the test."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def taken(meter: Meter, key: str, times: int) -> int:
    """How many of these go through."""
    passed = 0
    for _ in range(times):
        try:
            meter.take(key)
        except Busy:
            continue
        passed += 1
    return passed


def test_a_burst_goes_through_and_no_more() -> None:
    assert taken(Meter("calls", Rate(per_second=1, burst=5), Hands()), "ann", 10) == 5


def test_the_rate_holds_in_the_long_run() -> None:
    clock = Hands()
    meter, passed = Meter("calls", Rate(per_second=2, burst=5), clock), 0

    for _ in range(100):
        clock.now += 0.1
        passed += taken(meter, "ann", 3)

    assert passed == 5 + 19


def test_idling_saves_up_no_more_than_a_burst() -> None:
    clock = Hands()
    meter = Meter("calls", Rate(per_second=2, burst=5), clock)
    taken(meter, "ann", 5)

    clock.now += 1000

    assert taken(meter, "ann", 10) == 5


def test_one_caller_does_not_use_up_anothers_rate() -> None:
    meter = Meter("calls", Rate(per_second=1, burst=1), Hands())

    assert [taken(meter, key, 2) for key in ("ann", "bob")] == [1, 1]


def test_a_refusal_names_the_limit_and_when_to_come_back() -> None:
    clock = Hands()
    meter = Meter("calls", Rate(per_second=4, burst=1), clock)
    meter.take("ann")

    with pytest.raises(Busy) as refused:
        meter.take("ann")

    assert (refused.value.reason, refused.value.metadata) == (
        "RATE_LIMITED",
        {"limit": "calls", "retry_after_ms": "250"},
    )
    clock.now += 0.25
    meter.take("ann")


def test_callers_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_KEYS", 10)
    meter = Meter("calls", Rate(per_second=1, burst=1), Hands())

    for number in range(100):
        meter.take(str(number))

    assert len(meter._buckets) == 10


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("ipv4:1.2.3.4:5678", "", "1.2.3.4"),
        ("ipv4:1.2.3.4:5678", "9.9.9.9", "1.2.3.4"),
        ("ipv4:10.0.0.1:5678", "9.9.9.9", "9.9.9.9"),
        ("ipv4:10.0.0.1:5678", "6.6.6.6, 9.9.9.9", "9.9.9.9"),
        ("ipv4:10.0.0.1:5678", "9.9.9.9, 10.0.0.2", "9.9.9.9"),
        ("ipv4:10.0.0.1:5678", "", "10.0.0.1"),
        ("ipv4:10.0.0.1:5678", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("ipv4:10.0.0.1:5678", "9.9.9.9, nonsense", "local"),
        ("ipv6:[2001:db8::1]:5678", "", "2001:db8::/64"),
        ("ipv6:%5B2001:db8::1%5D:5678", "", "2001:db8::/64"),
        ("ipv6:[2001:db8::ffff:1]:5678", "", "2001:db8::/64"),
        ("ipv6:[::ffff:1.2.3.4]:5678", "", "1.2.3.4"),
        ("unix:/tmp/socket", "", "local"),
        ("", "", "local"),
    ],
)
def test_the_address_of_a_caller_is_the_last_that_is_no_trusted_proxy(peer: str, forwarded: str, address: str) -> None:
    trusted = [ipaddress.ip_network("10.0.0.0/8")]

    assert caller_address(peer, forwarded, trusted) == address
