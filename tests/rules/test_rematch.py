"""The same six once more."""

from __future__ import annotations

import pytest

from engine import match as table
from engine.match import MatchReason, OpenTable, Phase, Refused, Seating
from engine.rules.commands import Disqualify
from engine.rules.variant import VARIANTS, resolve
from tests.support.tables import PLAYERS, LoggedTable

SHORT = {"deck": "{5:16,6:16,7:16,8:16,9:16,T:16}", "match_deals": "1"}


def finished(seating: Seating = Seating.CHOSEN_TEAMS, *, ranked: bool = False) -> LoggedTable:
    played = LoggedTable()
    played.accepts(OpenTable(resolve("shandong", SHORT), seating, PLAYERS, ranked, draw=(3, 5, 1, 0, 2, 4)))
    played.everybody_ready()
    played.plays_itself_out()
    assert played.match.phase is Phase.FINISHED
    return played


@pytest.mark.parametrize("seating", Seating)
def test_a_rematch_seats_everybody_where_he_sat(seating: Seating) -> None:
    before = finished(seating)

    opening = table.rematch(before.match, "cem")
    assert isinstance(opening, OpenTable)
    after = LoggedTable()
    after.accepts(opening)

    assert after.match.players == before.match.players
    assert set(after.match.players) == set(PLAYERS)
    assert (after.match.variant, after.match.seating) == (before.match.variant, seating)
    assert after.match.phase is Phase.GATHERING


def test_a_rematch_is_never_ranked() -> None:
    opening = table.rematch(finished(ranked=True).match, "ann")

    assert isinstance(opening, OpenTable)
    assert not opening.ranked


def test_everybody_who_asks_gets_the_same() -> None:
    played = finished().match

    assert len({table.rematch(played, player) for player in PLAYERS}) == 1


def test_a_stranger_gets_no_rematch() -> None:
    played = finished().match

    assert table.rematch(played, "zoe") == Refused(MatchReason.NOT_YOUR_TABLE)
    assert table.rematch(played, table.NOBODY) == Refused(MatchReason.NOT_YOUR_TABLE)


def test_there_is_no_rematch_of_what_runs_or_was_closed() -> None:
    running = LoggedTable.seated(VARIANTS["shandong"])
    closed = LoggedTable.seated(VARIANTS["shandong"])
    closed.accepts(table.CloseTable("the lights went out"))

    assert table.rematch(running.match, "ann") == Refused(MatchReason.NOT_FINISHED)
    assert table.rematch(closed.match, "ann") == Refused(MatchReason.NOT_FINISHED)


def test_there_is_no_rematch_without_all_six() -> None:
    played = LoggedTable.seated(resolve("shandong", SHORT))
    played.accepts(Disqualify(2, "signals"))
    played.plays_itself_out()

    assert played.match.phase is Phase.FINISHED
    assert table.rematch(played.match, "ann") == Refused(MatchReason.NO_REMATCH)
    assert table.rematch(played.match, "cem") == Refused(MatchReason.NOT_YOUR_TABLE)
