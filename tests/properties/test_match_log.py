"""Laws of a table's log, over whole matches of careless players (rules.md R14)."""

import pytest

from engine import match as table
from engine.match import Match, Phase
from engine.rules.variant import VARIANTS
from engine.service import codec, wire
from engine.service.export import rebuild
from engine.store.chain import first_break
from tests.support.players import play_out
from tests.support.tables import TABLE_ID, LoggedTable


@pytest.fixture(scope="module", params=VARIANTS)
def played(request: pytest.FixtureRequest) -> LoggedTable:
    """Two deals and the beginning of a third."""
    made = LoggedTable.seated(request.param, chance=request.param)
    for deal in range(2):
        play_out(made, f"{request.param} {deal}")
        made.everybody_ready()
    made.time_passes()
    return made


def test_folding_the_log_gives_exactly_the_live_state(played: LoggedTable) -> None:
    assert rebuild(played.log) == played.match
    assert codec.state_hash(rebuild(played.log)) == codec.state_hash(played.match)


def test_a_table_is_the_same_from_whichever_deal_it_is_rebuilt(played: LoggedTable) -> None:
    starts = [at for at, stored in enumerate(played.log) if stored.type == "deal_started"]

    assert len(starts) == 3
    assert all(rebuild(played.log[start:]) == played.match for start in starts)


def test_every_prefix_of_a_log_can_be_shown(played: LoggedTable) -> None:
    match: Match = table.EMPTY
    for stored in played.log:
        match = table.evolve(match, codec.decode(stored.type, stored.schema, stored.payload))
        public = wire.public_part(match)
        assert [wire.view(TABLE_ID, match, seat, stored.version, public).private.seat for seat in (0, 5)] == [0, 5]


def test_after_every_command_somebody_can_move_the_table_on(played: LoggedTable) -> None:
    match: Match = table.EMPTY
    stuck = []
    for stored, following in zip(played.log, [*played.log[1:], None], strict=True):
        match = table.evolve(match, codec.decode(stored.type, stored.schema, stored.payload))
        wait = table.waiting(match)
        if following is None or following.command_id != stored.command_id:
            stuck += [] if table.is_over(match) or (wait is not None and wait.seats) else [stored.version]

    assert stuck == []


def test_versions_have_no_holes_and_hashes_follow(played: LoggedTable) -> None:
    assert [stored.version for stored in played.log] == list(range(1, len(played.log) + 1))
    assert first_break(played.log) is None


@pytest.mark.parametrize("key", VARIANTS)
def test_time_alone_ends_every_match(key: str) -> None:
    made = LoggedTable.seated(key, chance=f"asleep {key}")

    for _ in range(10_000):
        if table.is_over(made.match):
            break
        made.time_passes()

    assert made.match.phase is Phase.CLOSED
    assert made.match.counted == 1


@pytest.mark.parametrize("key", VARIANTS)
def test_a_match_that_one_player_keeps_alive_is_played_to_its_end(key: str) -> None:
    made = LoggedTable.seated(key, chance=f"alone {key}")

    for _ in range(40_000):
        if table.is_over(made.match):
            break
        if made.match.phase is Phase.BETWEEN_DEALS and not any(made.match.ready):
            made.accepts(table.SetReady("ann", ready=True))
        made.time_passes()

    assert made.match.phase is Phase.FINISHED
    assert made.match.counted == made.match.variant.match_deals
