"""The checker of a chaos run catches what it is there to catch: a true evidence passes, each lie is named."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from uuid import UUID

import pytest

from engine import match
from engine.rules.variant import VARIANTS
from engine.store.port import StoredEvent
from services.ranking.fold import Standing, changed
from tests.chaos.harness.checker import OVERDUE_MS, Law, violations
from tests.chaos.harness.evidence import (
    Board,
    Counted,
    Evidence,
    Head,
    Kind,
    Logged,
    Mark,
    Said,
    Seen,
    Term,
    Timeout,
    Truth,
    TurnedAway,
    Witnessed,
)
from tests.chaos.harness.truth import told_by
from tests.support.tables import PLAYERS, TABLE_ID, LoggedTable

LATER_MS = 1_900_000_000_000
ONE_DEAL = replace(VARIANTS["qingdao-charter"], match_deals=1)


@cache
def truth() -> Truth:
    """A ranked table whose first and only deal was played to its end by the clock."""
    played = LoggedTable()
    played.accepts(match.OpenTable(ONE_DEAL, players=PLAYERS, ranked=True))
    played.everybody_ready()
    played.plays_itself_out()
    log = rows(played.log)
    last = log[-1].event
    return told_by(TABLE_ID, Head(last.version, last.hash, closed=True, deadline_at_ms=None), log)


def rows(events: Sequence[StoredEvent]) -> list[Logged]:
    following = [event.command_id for event in events[1:]]
    return [Logged(event, event.command_id != after) for event, after in zip(events, [*following, None], strict=True)]


def honest() -> Evidence:
    """Everything as it should be: a player, a watcher, an operator and the boards all tell what the log tells."""
    table = truth()
    length = len(table.log)
    watched = [Mark(Kind.EVENT, version, table.forms["public"][version - 1]) for version in range(4, length + 1)]
    played = [Mark(Kind.EVENT, version, table.forms["seat2"][version - 1]) for version in range(2, length + 1)]
    standings: dict[str, Standing] = {}
    for result in table.results.values():
        standings.update(changed(standings, result))
    return Evidence(
        truths={TABLE_ID: table},
        said=[Said(TABLE_ID, "ann", row.event.command_id, row.event.version) for row in table.log if row.ends_command],
        seen=[
            Seen(TABLE_ID, "eve", 0, "public", [Mark(Kind.SNAPSHOT, 3), *watched, Mark(Kind.BEAT, length)]),
            Seen(TABLE_ID, "cem", 1, "seat2", [*played, Mark(Kind.VIEW, length)]),
        ],
        terms={TABLE_ID: [Term(1, 3), Term(1, 4), *(Term(version, 4) for version in range(2, length + 1))]},
        witnessed=[Witnessed(TABLE_ID, version, state) for version, state in enumerate(table.states, 1)],
        bus={TABLE_ID: table.facts},
        board=Board(
            [Counted(TABLE_ID, position) for position in table.results], standings, {player: [1] for player in PLAYERS}
        ),
        ended_at_ms=LATER_MS,
    )


def laws(evidence: Evidence) -> set[Law]:
    return {violation.law for violation in violations(evidence)}


def with_truth(**changes: object) -> Evidence:
    return replace(honest(), truths={TABLE_ID: replace(truth(), **changes)})  # type: ignore[arg-type]


def with_marks(*marks: Mark, after: int = 0) -> Evidence:
    """The stream of a watcher; an event without a digest is the right one."""
    true = [mark if mark.digest or mark.kind is not Kind.EVENT else event(mark.version) for mark in marks]
    return replace(honest(), seen=[Seen(TABLE_ID, "eve", after, "public", true)])


def event(version: int) -> Mark:
    return Mark(Kind.EVENT, version, truth().forms["public"][version - 1])


def test_an_honest_evidence_is_accepted() -> None:
    assert violations(honest()) == []
    assert len(truth().results) == 2
    assert truth().timeouts


def test_an_acknowledged_action_that_is_not_in_the_log_is_lost() -> None:
    lost = Said(TABLE_ID, "ann", UUID(int=1 << 64), 7)

    assert laws(replace(honest(), said=[lost])) == {Law.LOST_ACTION}


def test_an_action_acknowledged_at_another_version_than_its_own_is_lost() -> None:
    first, *_ = honest().said

    assert laws(replace(honest(), said=[first._replace(accepted_at=5)])) == {Law.LOST_ACTION}


def test_an_acknowledged_opening_of_a_table_that_does_not_exist_is_lost() -> None:
    said = Said(UUID(int=5), "ann", UUID(int=6), 1)

    assert laws(replace(honest(), said=[said])) == {Law.LOST_ACTION}


def test_a_refused_action_must_not_be_stored() -> None:
    first, *_ = honest().said

    assert laws(replace(honest(), said=[first._replace(accepted_at=None)])) == {Law.REFUSED_YET_STORED}


@pytest.mark.parametrize("distance", [1, 5])
def test_an_action_that_stands_in_the_log_twice_is_named(distance: int) -> None:
    log = list(truth().log)
    first = next(row for row in log if row.ends_command)
    place = first.event.version + distance
    twice = log[place - 1].event._replace(command_id=first.event.command_id)
    log[place - 1] = Logged(twice, ends_command=True)

    assert Law.DOUBLED_ACTION in laws(with_truth(log=log))


def test_an_event_that_was_shown_and_is_not_stored_is_named() -> None:
    length = len(truth().log)
    unstored = Mark(Kind.EVENT, length + 1, b"an event that a crash lost")

    assert laws(with_marks(event(length), unstored, after=length - 1)) == {Law.UNSTORED_SHOWN}


def test_a_view_of_a_version_that_is_not_stored_is_named() -> None:
    assert laws(with_marks(Mark(Kind.SNAPSHOT, len(truth().log) + 1))) == {Law.UNSTORED_SHOWN}


def test_an_event_shown_in_the_form_of_another_seat_is_named() -> None:
    hidden = next(
        version
        for version, forms in enumerate(zip(truth().forms["public"], truth().forms["seat2"], strict=True), 1)
        if forms[0] != forms[1]
    )
    seen = Mark(Kind.EVENT, hidden, truth().forms["seat2"][hidden - 1])

    assert laws(with_marks(seen, after=hidden - 1)) == {Law.UNSTORED_SHOWN}


def test_a_view_with_another_content_than_the_log_gives_is_named() -> None:
    views = {("public", 7): b"what the log gives"}
    marks = [Mark(Kind.SNAPSHOT, 7, b"something else")]
    lie = replace(with_truth(views=views), seen=[Seen(TABLE_ID, "eve", 0, "public", marks)])
    marks_of_truth = [Mark(Kind.SNAPSHOT, 7, b"what the log gives")]

    assert laws(lie) == {Law.WRONG_VIEW}
    assert laws(replace(lie, seen=[Seen(TABLE_ID, "eve", 0, "public", marks_of_truth)])) == set()


@pytest.mark.parametrize(
    "marks",
    [
        (Mark(Kind.SNAPSHOT, 3), Mark(Kind.EVENT, 5)),
        (Mark(Kind.SNAPSHOT, 3), Mark(Kind.EVENT, 4), Mark(Kind.EVENT, 4)),
        (Mark(Kind.SNAPSHOT, 3), Mark(Kind.EVENT, 4), Mark(Kind.SNAPSHOT, 4)),
        (Mark(Kind.SNAPSHOT, 3), Mark(Kind.EVENT, 4), Mark(Kind.BEAT, 5)),
        (Mark(Kind.SNAPSHOT, 3), Mark(Kind.EVENT, 4), Mark(Kind.VIEW, 3)),
        (Mark(Kind.EVENT, 2),),
    ],
    ids=["hole", "double", "late snapshot", "heartbeat ahead", "view behind", "no beginning"],
)
def test_a_stream_that_does_not_follow_is_named(marks: tuple[Mark, ...]) -> None:
    assert laws(with_marks(*marks)) == {Law.VERSION_HOLE}


def test_a_snapshot_for_a_client_that_went_on_from_a_version_means_that_the_log_went_back() -> None:
    assert laws(with_marks(Mark(Kind.SNAPSHOT, 3), after=5)) == {Law.VERSION_HOLE}


def test_a_changed_payload_breaks_the_chain() -> None:
    log = list(truth().log)
    log[6] = log[6]._replace(event=log[6].event._replace(payload=b"another"))

    assert laws(with_truth(log=log)) == {Law.BROKEN_CHAIN}


def test_a_head_that_is_not_the_last_event_breaks_the_chain() -> None:
    assert laws(with_truth(head=replace(truth().head, version=7))) == {Law.BROKEN_CHAIN}


@pytest.mark.parametrize("claimed", [Term(7, 4), Term(8, 4)], ids=["claimed", "written"])
def test_who_writes_to_a_table_after_a_later_leader_is_named(claimed: Term) -> None:
    written = {TABLE_ID: [Term(7, 3), claimed, Term(claimed.version + 1, 3)]}

    assert laws(replace(honest(), terms=written)) == {Law.ZOMBIE_WROTE}


def test_a_deal_that_does_not_verify_is_named() -> None:
    assert laws(with_truth(unfit=["deal 1, line 40: not so"])) == {Law.UNFIT_DEAL}


def test_a_live_state_that_the_log_does_not_fold_to_is_named() -> None:
    told = Witnessed(TABLE_ID, 5, truth().states[5])

    assert laws(replace(honest(), witnessed=[told])) == {Law.WRONG_STATE}


def test_a_missing_fact_is_named() -> None:
    assert laws(replace(honest(), bus={TABLE_ID: truth().facts[:-1]})) == {Law.MISSING_FACT}


def test_facts_that_never_reached_the_bus_are_named() -> None:
    assert laws(replace(honest(), bus={})) == {Law.MISSING_FACT}


def test_a_fact_that_is_still_in_the_outbox_is_not_missing() -> None:
    *published, last = truth().facts
    waiting = replace(honest(), bus={TABLE_ID: published}, pending={TABLE_ID: {last.position}})

    assert laws(waiting) == set()
    assert laws(replace(waiting, settled=False)) == {Law.UNSETTLED}


def test_a_doubled_fact_is_named() -> None:
    first, *rest = truth().facts

    assert laws(replace(honest(), bus={TABLE_ID: [first, first, *rest]})) == {Law.DOUBLED_FACT}


def test_reordered_facts_are_named() -> None:
    first, second, *rest = truth().facts

    assert laws(replace(honest(), bus={TABLE_ID: [second, first, *rest]})) == {Law.REORDERED_FACT}


def test_a_late_double_is_a_double_and_out_of_order() -> None:
    first, second, *rest = truth().facts

    found = laws(replace(honest(), bus={TABLE_ID: [first, second, first, *rest]}))

    assert Law.DOUBLED_FACT in found


def test_a_fact_of_no_event_is_named() -> None:
    first, *rest = truth().facts
    changed_fact = first._replace(payload=b"another")

    assert laws(replace(honest(), bus={TABLE_ID: [changed_fact, *rest]})) == {Law.MISSING_FACT, Law.FOREIGN_FACT}
    assert laws(replace(honest(), bus={TABLE_ID: truth().facts, UUID(int=9): [first]})) == {Law.FOREIGN_FACT}


def test_a_result_that_does_not_count_is_named() -> None:
    board = replace(honest().board, journal=honest().board.journal[1:])

    assert Law.UNCOUNTED_RESULT in laws(replace(honest(), board=board))


def test_a_result_that_counts_twice_is_named() -> None:
    board = replace(honest().board, journal=[*honest().board.journal, honest().board.journal[0]])

    assert Law.DOUBLED_RESULT in laws(replace(honest(), board=board))


def test_results_of_a_table_that_count_in_another_order_are_named() -> None:
    board = replace(honest().board, journal=honest().board.journal[::-1])

    assert laws(replace(honest(), board=board)) == {Law.REORDERED_RESULT}


def test_a_result_of_no_table_is_named() -> None:
    board = replace(honest().board, journal=[*honest().board.journal, Counted(UUID(int=9), 2)])

    assert laws(replace(honest(), board=board)) == {Law.FOREIGN_RESULT}


def test_a_rating_that_is_not_the_fold_of_the_results_is_named() -> None:
    standings = dict(honest().board.standings)
    wrong = replace(standings["ann"], deals=standings["ann"].deals + 1)
    board = replace(honest().board, standings=standings | {"ann": wrong})

    assert laws(replace(honest(), board=board)) == {Law.WRONG_RATING}


def test_a_rating_of_a_player_without_results_is_named() -> None:
    board = replace(honest().board, standings={**honest().board.standings, "zoe": Standing()})

    assert laws(replace(honest(), board=board)) == {Law.WRONG_RATING}


@pytest.mark.parametrize("told", [[], [1, 1], [2]])
def test_a_rating_told_never_twice_or_out_of_order_is_named(told: list[int]) -> None:
    board = replace(honest().board, told={**honest().board.told, "ann": told})

    assert laws(replace(honest(), board=board)) == {Law.WRONG_TELLING}


def test_a_deadline_that_was_enforced_twice_is_named() -> None:
    first = truth().timeouts[0]

    assert laws(with_truth(timeouts=[first, first._replace(version=first.version + 2)])) == {Law.DOUBLED_TIMEOUT}


def test_two_seats_that_time_out_in_one_window_are_fine() -> None:
    timeouts = [Timeout((1, 4), 0, 10), Timeout((1, 4), 1, 11), Timeout((1, 5), 0, 12)]

    assert laws(with_truth(timeouts=timeouts)) == set()


def test_a_table_that_has_not_moved_since_all_was_healed_is_stuck() -> None:
    stuck = with_truth(head=replace(truth().head, closed=False))

    assert laws(replace(stuck, healed={TABLE_ID: len(truth().log)})) == {Law.STUCK_TABLE}
    assert laws(replace(stuck, healed={TABLE_ID: len(truth().log) - 1})) == set()


def test_a_table_that_lets_its_deadline_pass_is_stuck() -> None:
    def waiting(until_ms: int) -> Evidence:
        return with_truth(head=replace(truth().head, closed=False, deadline_at_ms=until_ms))

    assert laws(waiting(LATER_MS - OVERDUE_MS - 1)) == {Law.STUCK_TABLE}
    assert laws(waiting(LATER_MS - OVERDUE_MS + 1)) == set()


def test_a_client_that_is_turned_away_is_named() -> None:
    away = TurnedAway("ann", TABLE_ID, "NOT_FOUND")

    assert laws(replace(honest(), turned_away=[away])) == {Law.TURNED_AWAY}


def test_six_players_left_waiting_are_named_and_five_are_not() -> None:
    assert laws(replace(honest(), waiting=6)) == {Law.LEFT_WAITING}
    assert laws(replace(honest(), waiting=5)) == set()


def test_an_outcry_in_a_log_is_named() -> None:
    assert laws(replace(honest(), outcries=["table quarantined"])) == {Law.OUTCRY}
