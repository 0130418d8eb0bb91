"""Laws of rating."""

from __future__ import annotations

from random import Random
from statistics import correlation, mean

from hypothesis import given
from hypothesis import strategies as st

from services.ranking.rating import MU, SEATS, SIGMA, SIGMA_FLOOR, Skill, rated, shown

SKILLS = st.builds(Skill, mu=st.floats(-40, 90), sigma=st.floats(SIGMA_FLOOR, SIGMA))
TABLES = st.lists(SKILLS, min_size=SEATS, max_size=SEATS)
PLACES = st.permutations(range(SEATS))
POINTS = st.integers(-12, 12)


@given(TABLES, PLACES, POINTS, POINTS)
def test_the_first_place_never_loses_shown_rating(skills: list[Skill], places: list[int], even: int, odd: int) -> None:
    first = places[0]

    assert shown(rated(skills, places, even, odd)[first]) >= shown(skills[first])


@given(TABLES, PLACES, POINTS, POINTS)
def test_the_winning_sides_first_finisher_never_loses_shown_rating(
    skills: list[Skill], places: list[int], even: int, odd: int
) -> None:
    after = rated(skills, places, even, odd)

    for parity, won in ((0, even > odd), (1, odd > even)):
        finisher = next(seat for seat in places if seat % 2 == parity)
        assert not won or shown(after[finisher]) >= shown(skills[finisher])


@given(SKILLS, PLACES)
def test_among_equals_a_better_place_is_worth_more(skill: Skill, places: list[int]) -> None:
    after = rated([skill] * SEATS, places, 6, -6)

    by_place = [after[seat].mu for seat in places]
    assert by_place == sorted(by_place, reverse=True)
    assert len({round(mu, 9) for mu in by_place}) == SEATS


@given(TABLES, PLACES, st.integers(0, SEATS - 2))
def test_changing_places_with_the_one_before_is_never_worth_less(
    skills: list[Skill], places: list[int], place: int
) -> None:
    better = list(places)
    better[place], better[place + 1] = better[place + 1], better[place]
    seat = places[place + 1]

    assert rated(skills, better, 0, 0)[seat].mu >= rated(skills, places, 0, 0)[seat].mu


@given(TABLES, PLACES, POINTS, POINTS)
def test_certainty_never_shrinks_and_never_becomes_absolute(
    skills: list[Skill], places: list[int], even: int, odd: int
) -> None:
    for old, new in zip(skills, rated(skills, places, even, odd), strict=True):
        assert SIGMA_FLOOR <= new.sigma <= old.sigma


@given(TABLES, PLACES, POINTS, POINTS)
def test_the_same_deal_rates_to_the_same_bits(skills: list[Skill], places: list[int], even: int, odd: int) -> None:
    assert rated(skills, places, even, odd) == rated(skills, places, even, odd)


def test_a_newcomer_shows_a_thousand() -> None:
    assert shown(Skill()) == 1000


def test_a_hundred_thousand_deals_inflate_nothing_and_find_the_strong() -> None:
    chance = Random(20261130)
    strength = [chance.gauss(MU, 6) for _ in range(600)]
    skills = [Skill() for _ in strength]

    for _ in range(100_000):
        players = chance.sample(range(len(strength)), SEATS)
        form = [strength[player] + chance.gauss(0, 5) for player in players]
        places = sorted(range(SEATS), key=lambda seat: -form[seat])
        points = [
            sum((4, 2, 0, 0, -2, -4)[place] for place in range(SEATS) if places[place] % 2 == side) for side in (0, 1)
        ]
        for player, skill in zip(players, rated([skills[p] for p in players], places, *points), strict=True):
            skills[player] = skill

    assert abs(mean(skill.mu for skill in skills) - MU) < 0.25
    assert correlation(strength, [skill.mu for skill in skills]) > 0.98
