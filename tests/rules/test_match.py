"""The life of a table, in the players' language."""

from dataclasses import replace
from functools import partial
from itertools import permutations

import pytest

from engine import match as table
from engine.match import (
    LeaveSeat,
    MatchReason,
    OpenTable,
    Phase,
    Play,
    Seating,
    SetReady,
    Substitute,
    TakeSeat,
    WaitKind,
)
from engine.match import events as at_table
from engine.match.standings import is_decided, with_deal, with_dock
from engine.rules import events as fact
from engine.rules.commands import Agree, Disqualify, Dock, Forfeit, JudgeLast, Pass, Revolt, Stay, Swap, TimeOut, Warn
from engine.rules.variant import VARIANTS, Variant, resolve
from engine.service.export import rebuild
from tests.support.players import play_out
from tests.support.tables import PLAYERS, LoggedTable

CHARTER = VARIANTS["qingdao-charter"]


def an_open_table(seating: Seating = Seating.CHOSEN_TEAMS) -> LoggedTable:
    opened = LoggedTable()
    opened.accepts(OpenTable(CHARTER, seating))
    return opened


def a_match_between_deals(variant: Variant = CHARTER) -> LoggedTable:
    played = LoggedTable.seated(variant)
    played.plays_itself_out()
    assert played.match.phase is Phase.BETWEEN_DEALS
    return played


def test_a_table_that_was_never_opened_answers_nothing() -> None:
    assert LoggedTable().refuses(TakeSeat("ann", 0)) == "TABLE_CLOSED"


def test_a_table_is_opened_once() -> None:
    assert an_open_table().refuses(OpenTable(CHARTER)) == "NOT_YOUR_TABLE"


def test_seven_players_want_six_seats() -> None:
    opened = an_open_table()

    for seat, player in enumerate(PLAYERS):
        opened.accepts(TakeSeat(player, seat))

    assert opened.match.players == PLAYERS
    assert opened.refuses(TakeSeat("gus", 3)) == "SEAT_TAKEN"


def test_nobody_sits_twice() -> None:
    opened = an_open_table()
    opened.accepts(TakeSeat("ann", 0))

    assert opened.refuses(TakeSeat("ann", 1)) == "ALREADY_SEATED"


def test_who_stands_up_before_the_first_deal_leaves_an_empty_seat() -> None:
    opened = an_open_table()
    opened.accepts(TakeSeat("ann", 0))

    opened.accepts(LeaveSeat("ann"))

    assert opened.match.players[0] == table.NOBODY
    assert opened.refuses(LeaveSeat("ann")) == "NOT_SEATED"
    assert opened.accepts(TakeSeat("ben", 0)) == (at_table.SeatTaken(0, "ben"),)


def test_the_house_commits_to_a_seed_before_anybody_contributes() -> None:
    unbound = table.fold(
        table.EMPTY, (at_table.TableOpened(CHARTER, Seating.CHOSEN_TEAMS, ranked=False, players=PLAYERS),)
    )

    assert table.wants_commitment(unbound)
    assert table.decide(unbound, SetReady("ann", ready=True)) == table.Refused(MatchReason.NOT_COMMITTED)


def test_the_deal_starts_when_the_last_of_six_is_ready() -> None:
    opened = LoggedTable()
    opened.accepts(OpenTable(CHARTER, players=PLAYERS))
    for player in PLAYERS[:5]:
        opened.accepts(SetReady(player, ready=True))
        assert opened.match.phase is Phase.GATHERING

    opened.accepts(SetReady("fay", ready=True))

    assert opened.match.phase is Phase.PLAYING
    assert opened.match.deal_number == 1


def test_who_is_not_ready_any_more_holds_the_deal_up() -> None:
    opened = LoggedTable()
    opened.accepts(OpenTable(CHARTER, players=PLAYERS))
    opened.accepts(SetReady("ann", ready=True, contribution="aa"))
    opened.accepts(SetReady("ann", ready=False))

    for player in PLAYERS[1:]:
        opened.accepts(SetReady(player, ready=True))

    assert opened.match.phase is Phase.GATHERING
    assert opened.match.contributions == ("",) * 6


def test_a_full_table_starts_when_its_time_is_up() -> None:
    opened = LoggedTable()
    opened.accepts(OpenTable(CHARTER, players=PLAYERS))

    opened.time_passes()

    assert opened.match.phase is Phase.PLAYING


def test_a_table_that_never_fills_is_closed() -> None:
    opened = an_open_table()
    opened.accepts(TakeSeat("ann", 0))

    opened.time_passes()

    assert opened.match.phase is Phase.CLOSED
    assert opened.refuses(TakeSeat("ben", 1)) == "TABLE_CLOSED"
    assert table.due(opened.match) == ()
    assert table.waiting(opened.match) is None


def test_seats_are_bound_while_a_deal_runs() -> None:
    playing = LoggedTable.seated()

    assert playing.refuses(LeaveSeat("ann")) == "DEAL_RUNNING"
    assert playing.refuses(SetReady("ann", ready=True)) == "DEAL_RUNNING"
    assert playing.refuses(TakeSeat("gus", 0)) == "DEAL_RUNNING"


def test_only_who_sits_here_plays_here() -> None:
    assert LoggedTable.seated().refuses(Play("gus", Pass(0))) == "NOT_SEATED"


def test_nobody_plays_before_the_first_deal() -> None:
    opened = an_open_table()
    opened.accepts(TakeSeat("ann", 0))

    assert opened.refuses(Play("ann", Pass(0))) == "NO_DEAL_RUNNING"


def test_a_player_acts_from_his_own_seat_whatever_the_command_says() -> None:
    playing = LoggedTable.seated(replace(CHARTER, revolution=False))
    wait = table.waiting(playing.match)
    assert wait is not None
    (turn,) = wait.seats
    other = (turn + 1) % 6

    assert playing.refuses(Play(PLAYERS[other], Pass(turn))) == "NOT_YOUR_TURN"


def test_a_turn_that_runs_out_is_played_by_the_house() -> None:
    playing = LoggedTable.seated(replace(CHARTER, revolution=False))
    wait = table.waiting(playing.match)
    assert wait is not None
    assert wait.kind is WaitKind.TURN

    assert table.due(playing.match) == (TimeOut(wait.seats[0]),)


def test_a_window_that_runs_out_is_answered_for_all_who_have_not() -> None:
    playing = LoggedTable.seated()
    wait = table.waiting(playing.match)
    assert wait is not None
    assert wait.kind is WaitKind.WINDOW

    assert table.due(playing.match) == tuple(TimeOut(seat) for seat in range(6))


def test_an_answer_in_a_window_does_not_move_its_deadline() -> None:
    playing = LoggedTable.seated()
    before = table.waiting(playing.match)

    playing.accepts(TimeOut(2))

    after = table.waiting(playing.match)
    assert before is not None
    assert after is not None
    assert after.since == before.since
    assert after.seats == (0, 1, 3, 4, 5)


def test_a_new_turn_is_a_new_wait() -> None:
    playing = LoggedTable.seated(replace(CHARTER, revolution=False))
    before = table.waiting(playing.match)

    playing.time_passes()

    after = table.waiting(playing.match)
    assert before is not None
    assert after is not None
    assert after.since != before.since


def test_an_extended_deadline_belongs_to_the_present_wait() -> None:
    playing = LoggedTable.seated(replace(CHARTER, revolution=False))

    playing.accepts(table.ExtendDeadline(17))
    assert playing.match.extended_to_ms == 17
    playing.time_passes()

    assert playing.match.extended_to_ms == 0


def test_a_match_lasts_as_many_deals_as_the_variant_says() -> None:
    played = LoggedTable.seated(replace(CHARTER, match_deals=2))
    played.plays_itself_out()
    played.everybody_ready()

    played.plays_itself_out()

    assert played.match.phase is Phase.FINISHED
    assert played.match.counted == 2
    assert played.refuses(SetReady("ann", ready=True)) == "TABLE_CLOSED"


def test_a_match_ends_when_a_team_has_the_points() -> None:
    limited = table.EMPTY._replace(variant=replace(CHARTER, match_deals=100, match_points=12))

    assert not is_decided(with_deal(limited, 6, 0))
    assert is_decided(with_deal(with_deal(limited, 6, 0), 6, 0))
    assert is_decided(with_deal(limited, 0, 12))


def test_no_points_end_a_match_without_a_limit() -> None:
    assert not is_decided(with_deal(table.EMPTY._replace(variant=replace(CHARTER, match_points=0)), 12, 0))


def test_what_a_team_scores_every_seat_of_it_gets() -> None:
    scored = with_deal(with_deal(table.EMPTY, 6, 0), 0, 4)

    assert scored.points == (6, 4, 6, 4, 6, 4)
    assert (scored.even_points, scored.odd_points) == (6, 4)


def test_points_taken_are_the_seats_own() -> None:
    docked = with_dock(with_deal(table.EMPTY, 6, 0), 2, 5)

    assert docked.points == (6, 0, 1, 0, 6, 0)
    assert docked.even_points == 6


def test_a_deal_takes_over_places_and_cutter_of_the_deal_before() -> None:
    played = a_match_between_deals()
    places = played.match.places
    cutter = played.match.cutter
    assert sorted(places) == list(range(6))

    played.everybody_ready()

    started = played.match.started
    assert started is not None
    assert started.places == places
    assert started.cutter == cutter
    assert started.changed == ()
    assert started.first_drawer is None
    assert (started.deal, started.counted) == (2, 1)


def test_a_seat_that_changed_hands_is_told_to_the_next_deal() -> None:
    played = a_match_between_deals()
    played.accepts(LeaveSeat("cem"))
    played.accepts(TakeSeat("gus", 2))

    played.accepts(Substitute(5, "hal"))
    played.accepts(SetReady("gus", ready=True))
    played.accepts(table.CallDeal())

    started = played.match.started
    assert started is not None
    assert started.changed == (2, 5)
    assert started.players == ("ann", "ben", "gus", "dua", "eve", "hal")


def test_who_leaves_and_comes_back_has_not_changed_hands() -> None:
    played = a_match_between_deals()
    played.accepts(LeaveSeat("cem"))
    played.accepts(TakeSeat("cem", 2))

    played.everybody_ready()

    assert played.match.started is not None
    assert played.match.started.changed == ()


def test_a_match_whose_seat_stays_empty_is_closed() -> None:
    played = a_match_between_deals()
    played.accepts(LeaveSeat("cem"))
    assert played.refuses(table.CallDeal()) == "NOT_SEATED"

    played.time_passes()

    assert played.match.phase is Phase.CLOSED


def test_a_match_that_nobody_plays_any_more_is_closed() -> None:
    played = a_match_between_deals()

    played.time_passes()

    assert played.match.phase is Phase.CLOSED


def test_one_who_is_ready_keeps_the_match_alive() -> None:
    played = a_match_between_deals()
    played.accepts(SetReady("ann", ready=True))

    played.time_passes()

    assert played.match.phase is Phase.PLAYING


def test_everything_is_shown_when_a_deal_is_over() -> None:
    played = LoggedTable.seated(replace(CHARTER, match_deals=1))
    started = played.match.started
    assert started is not None

    played.plays_itself_out()

    kinds = [stored.type for stored in played.log]
    assert kinds[-2:] == ["deal_revealed", "match_finished"]
    assert started.deck is not None
    assert len(started.deck) == 216


def test_before_it_is_over_nothing_of_the_shuffle_is_shown() -> None:
    started = LoggedTable.seated().match.started
    assert started is not None

    for viewer in (None, *range(6)):
        shown = table.redacted(started, viewer)
        assert isinstance(shown, at_table.DealStarted)
        assert (shown.deck, shown.seed, shown.contributions) == (None, None, None)


def test_a_contribution_is_seen_by_its_seat_alone() -> None:
    said = at_table.ReadyChanged(2, ready=True, contribution="ff")

    assert table.redacted(said, 2) == said
    assert table.redacted(said, 1) == replace(said, contribution=None)
    assert table.redacted(said, None) == replace(said, contribution=None)


def test_the_seed_is_hidden_and_its_commitment_shown() -> None:
    bound = at_table.SeedCommitted(1, "c0ffee", "5eed")

    assert table.redacted(bound, 0) == replace(bound, seed=None)


def test_a_seat_whose_player_is_disqualified_is_empty_and_he_stays_away() -> None:
    played = a_match_between_deals()

    played.accepts(Disqualify(2, "signals"))

    assert played.match.players[2] == table.NOBODY
    assert played.refuses(TakeSeat("cem", 2)) == "NOT_YOUR_TABLE"
    assert played.refuses(Substitute(2, "cem")) == "NOT_YOUR_TABLE"
    played.accepts(TakeSeat("gus", 2))


def test_the_house_may_seat_somebody_else_while_a_deal_runs() -> None:
    playing = LoggedTable.seated()
    playing.accepts(Disqualify(2, "signals"))
    assert playing.match.players[2] == table.NOBODY

    playing.accepts(Substitute(2, "gus"))

    assert playing.match.players[2] == "gus"
    assert playing.match.phase is Phase.PLAYING


def test_penalties_between_deals() -> None:
    played = a_match_between_deals()
    points = played.match.points

    assert played.accepts(Warn(1, "signals")) == (fact.Warned(1, "signals"),)
    played.accepts(Dock(1, 3, "signals"))

    assert played.match.points[1] == points[1] - 3
    assert played.refuses(Forfeit(1)) == "NO_DEAL_RUNNING"
    assert played.refuses(JudgeLast(1)) == "NO_DEAL_RUNNING"


def test_points_taken_in_a_deal_leave_the_seats_total() -> None:
    playing = LoggedTable.seated()

    playing.accepts(Dock(4, 2, "signals"))

    assert playing.match.points == (0, 0, 0, 0, -2, 0)
    playing.plays_itself_out()
    even, odd = playing.match.even_points, playing.match.odd_points
    assert playing.match.points == (even, odd, even, odd, even - 2, odd)


def test_a_table_closed_in_a_deal_shows_its_shuffle() -> None:
    playing = LoggedTable.seated()

    kinds = [type(event) for event in playing.accepts(table.CloseTable("void"))]

    assert kinds == [at_table.DealRevealed, at_table.TableClosed]


def test_the_house_gives_the_seats_of_a_ranked_table() -> None:
    opened = LoggedTable()
    opened.accepts(OpenTable(CHARTER, players=PLAYERS, ranked=True))
    opened.accepts(LeaveSeat("ann"))

    assert opened.refuses(TakeSeat("gus", 0)) == "SEATS_ARE_GIVEN"


def a_careless_deal(variant: Variant, number: int) -> LoggedTable:
    played = LoggedTable.seated(variant, chance=f"swap {number}")
    play_out(played, number)
    return played


def a_swap_is_possible(played: LoggedTable) -> bool:
    fifth, last = played.match.places[4:]
    return fifth % 2 == last % 2


def test_fifth_and_last_of_one_team_may_swap_until_the_next_deal() -> None:
    variant = replace(CHARTER, swap_last=True)
    played = next(filter(a_swap_is_possible, map(partial(a_careless_deal, variant), range(20))))
    *_, fifth, last = played.match.places
    points = played.match.points

    played.plays(fifth, Swap(fifth))
    played.plays(last, Agree(last))

    assert played.match.places[4:] == (last, fifth)
    assert played.match.points == points
    played.everybody_ready()
    assert played.match.started is not None
    assert played.match.started.places[4:] == (last, fifth)


def two_revolt(played: LoggedTable) -> None:
    """Everybody might, and two do."""
    for seat in range(6):
        played.plays(seat, (Revolt if seat < 2 else Stay)(seat))
    assert played.match.voided
    assert played.match.phase is Phase.BETWEEN_DEALS


WITHOUT_TWOS_AND_JOKERS = resolve("qingdao-charter", {"deck": "{2:16,s:4,b:4}", "match_deals": "2"})


def test_a_void_deal_does_not_count_and_is_dealt_again_by_the_same_drawer() -> None:
    voided = LoggedTable.seated(WITHOUT_TWOS_AND_JOKERS)
    drawer = voided.match.drawer

    two_revolt(voided)
    voided.accepts(Substitute(3, "gus"))
    voided.accepts(table.CallDeal())

    started = voided.match.started
    assert started is not None
    assert (started.deal, started.counted) == (2, 0)
    assert started.first_drawer == voided.match.drawer == drawer
    assert started.changed == (3,)
    assert started.places == ()
    assert voided.match.points == (0,) * 6


def test_seats_that_changed_before_a_void_deal_still_count_as_changed() -> None:
    played = LoggedTable.seated(WITHOUT_TWOS_AND_JOKERS)
    for seat in range(6):
        played.plays(seat, Stay(seat))
    play_out(played, "first")
    places = played.match.places
    played.accepts(Substitute(0, "gus"))
    played.accepts(table.CallDeal())

    two_revolt(played)
    played.accepts(Substitute(4, "hal"))
    played.accepts(table.CallDeal())

    started = played.match.started
    assert started is not None
    assert started.changed == (0, 4)
    assert started.places == places


def test_a_table_is_rebuilt_from_its_last_deals_start_alone() -> None:
    played = a_match_between_deals()
    played.accepts(Dock(1, 3, "signals"))
    played.everybody_ready()
    played.time_passes()
    starts = [at for at, stored in enumerate(played.log) if stored.type == "deal_started"]

    assert len(starts) == 2
    assert rebuild(played.log[starts[-1] :]) == played.match
    assert rebuild(played.log) == played.match


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_three_who_sit_down_at_once_all_get_a_seat(order: tuple[int, ...]) -> None:
    opened = an_open_table(Seating.DRAW)

    for number in order:
        opened.accepts(TakeSeat(PLAYERS[number], 0, draw=(5, 3, 1, 0, 2, 4)))

    assert sum(player != table.NOBODY for player in opened.match.players) == 3
