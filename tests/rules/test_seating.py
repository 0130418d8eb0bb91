import pytest

from engine.match.seating import EMPTY_SEATS, Seating, changed_hands, seat_for, seated

SIX = ("a", "b", "c", "d", "e", "f")


def test_chosen_teams_sit_as_they_are_listed() -> None:
    assert seated(Seating.CHOSEN_TEAMS, SIX, (5, 4, 3, 2, 1, 0)) == SIX


def test_a_draw_gives_everybody_the_seat_he_drew() -> None:
    assert seated(Seating.DRAW, SIX, (5, 4, 3, 2, 1, 0)) == ("f", "e", "d", "c", "b", "a")
    assert seated(Seating.DRAW, SIX, (2, 0, 1, 3, 5, 4)) == ("b", "c", "a", "d", "f", "e")


@pytest.mark.parametrize("draw", [(0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0), (3, 1, 5, 0, 4, 2)])
def test_chosen_opposites_stay_opposite_whatever_is_drawn(draw: tuple[int, ...]) -> None:
    players = seated(Seating.CHOSEN_OPPOSITES, SIX, draw)

    assert sorted(players) == sorted(SIX)
    assert all({players[seat], players[seat + 3]} == {SIX[seat], SIX[seat + 3]} for seat in range(3))


def test_the_draw_decides_the_teams_of_chosen_opposites() -> None:
    assert seated(Seating.CHOSEN_OPPOSITES, SIX, (3, 0, 1, 4, 5, 2)) == ("d", "b", "f", "a", "e", "c")


def test_with_chosen_teams_one_sits_where_one_wants_or_not_at_all() -> None:
    players = ("a", "", "", "", "", "")

    assert seat_for(Seating.CHOSEN_TEAMS, players, 3, (1, 2, 3, 4, 5, 0)) == 3
    assert seat_for(Seating.CHOSEN_TEAMS, players, 0, (1, 2, 3, 4, 5, 0)) is None


def test_with_chosen_opposites_who_comes_second_duels_who_came_first() -> None:
    players = ("a", "", "", "", "", "")

    assert seat_for(Seating.CHOSEN_OPPOSITES, players, 0, (1, 2, 3, 4, 5, 0)) == 3
    assert seat_for(Seating.CHOSEN_OPPOSITES, ("a", "", "", "b", "", ""), 0, (1, 2, 4, 5, 0, 3)) is None


def test_with_a_draw_the_wish_does_not_count() -> None:
    assert seat_for(Seating.DRAW, EMPTY_SEATS, 0, (4, 2, 0, 1, 3, 5)) == 4
    assert seat_for(Seating.DRAW, ("", "", "", "", "a", ""), 0, (4, 2, 0, 1, 3, 5)) == 2
    assert seat_for(Seating.DRAW, SIX, 0, (4, 2, 0, 1, 3, 5)) is None


def test_a_seat_changed_hands_when_somebody_else_sits_there() -> None:
    assert changed_hands(SIX, ("a", "b", "x", "d", "e", "")) == (2, 5)
