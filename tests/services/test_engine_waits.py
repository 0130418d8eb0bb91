import pytest

from engine import match
from engine.match import Match, Seating
from engine.match.events import (
    DeadlineExtended,
    MatchFinished,
    ReadyChanged,
    SeatTaken,
    SeedCommitted,
    TableClosed,
    TableOpened,
)
from engine.rules.variant import Variant
from engine.service.waits import Spans, deadline_after, is_houses_turn, shown_ms, was_down
from engine.store.port import Deadline

SPANS = Spans(turn_ms=20_000, window_ms=5_000, between_ms=30_000, gathering_ms=60_000, late_ms=3_000)
SIX = ("anna", "boris", "chen", "dora", "emil", "fatma")
OPENED = match.evolve(match.EMPTY, TableOpened(Variant(), Seating.CHOSEN_TEAMS, ranked=False, players=()))
GATHERING = match.evolve(OPENED, SeedCommitted(1, "c", "s"))
FULL = match.fold(
    match.EMPTY,
    [TableOpened(Variant(), Seating.CHOSEN_TEAMS, ranked=True, players=SIX), SeedCommitted(1, "c", "s")],
)


def after(before: Match, now: Match, old: Deadline | None) -> Deadline | None:
    return deadline_after(before, now, old, version=9, at_ms=1_000, spans=SPANS)


def test_when_it_is_the_houses_turn_the_deadline_is_now_and_players_are_shown_none() -> None:
    deadline = after(match.EMPTY, OPENED, None)

    assert is_houses_turn(OPENED)
    assert deadline == Deadline(1_000, 9)
    assert shown_ms(OPENED, deadline) == 0


def test_once_the_house_has_acted_the_wait_begins() -> None:
    assert after(OPENED, GATHERING, Deadline(500, 1)) == Deadline(61_000, 9)


def test_somebody_who_sits_down_gives_the_table_more_time_to_gather() -> None:
    seated = match.evolve(GATHERING, SeatTaken(0, "anna"))

    assert after(GATHERING, seated, Deadline(500, 2)) == Deadline(61_000, 9)


def test_somebody_who_is_ready_gives_nobody_more_time() -> None:
    ready = match.evolve(FULL, ReadyChanged(0, ready=True, contribution=""))

    assert after(FULL, ready, Deadline(500, 2)) == Deadline(500, 2)


def test_an_extended_deadline_keeps_its_fence() -> None:
    extended = match.evolve(FULL, DeadlineExtended(77_000))

    assert after(FULL, extended, Deadline(500, 2)) == Deadline(77_000, 2)


@pytest.mark.parametrize("end", [TableClosed("over"), MatchFinished(4, (0,) * 6, 0, 0)])
def test_a_table_that_is_over_has_no_deadline(end: match.Event) -> None:
    over = match.evolve(FULL, end)

    assert after(FULL, over, Deadline(500, 2)) is None
    assert shown_ms(over, None) == 0


@pytest.mark.parametrize(
    ("now", "steady_since", "down"),
    [
        (100_010, 0, False),
        (102_900, 0, False),
        (103_100, 0, True),
        (100_010, 60_000, False),
        (100_010, 99_000, True),
        (100_010, 96_900, False),
        (100_010, 100_005, True),
    ],
    ids=[
        "in time",
        "a little late",
        "too late",
        "steady before the wait",
        "just back",
        "back long enough",
        "back after",
    ],
)
def test_a_deadline_does_not_count_when_the_house_was_down(now: int, steady_since: int, down: bool) -> None:  # noqa: FBT001
    deadline = Deadline(100_000, 5)

    assert was_down(FULL, deadline, now, steady_since, SPANS) is down
