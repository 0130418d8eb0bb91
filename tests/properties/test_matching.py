"""Laws of matching, compared with brute force over every choice of six."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from engine.runtime.uuid7 import uuid7
from services.matchmaking.matching import SEATS, Match, Queue, Waiting, matches

QUEUES = st.sampled_from([Queue("shandong", 1), Queue("shandong", 4), Queue("jinan", 4)])
SHUFFLES = st.randoms(use_true_random=False)


def ticket(number: int, queue: Queue, created_at_ms: int) -> Waiting:
    return Waiting(UUID(int=number), f"player-{number}", queue, created_at_ms)


WAITING_ROOMS = st.lists(st.tuples(QUEUES, st.integers(0, 20)), max_size=12).map(
    lambda wishes: [ticket(number, queue, at_ms) for number, (queue, at_ms) in enumerate(wishes)]
)


def made_from(waiting: Sequence[Waiting]) -> list[Match]:
    return matches(waiting, lambda six: six, uuid7)


def age(ticket: Waiting) -> tuple[int, UUID]:
    return ticket.created_at_ms, ticket.ticket_id


@given(WAITING_ROOMS)
def test_no_choice_of_sixes_gives_more_tables(waiting: list[Waiting]) -> None:
    assert len(made_from(waiting)) == most_by_brute_force(waiting)


def most_by_brute_force(waiting: Sequence[Waiting]) -> int:
    if len(waiting) < SEATS:
        return 0
    sixes = [six for six in combinations(waiting, SEATS) if len({each.queue for each in six}) == 1]
    if not sixes:
        return 0
    # Two disjoint sixes of twelve tickets are a six and its complement.
    return 2 if any(_is_table([t for t in waiting if t not in six]) for six in sixes) else 1


def _is_table(tickets: Sequence[Waiting]) -> bool:
    return len(tickets) == SEATS and len({each.queue for each in tickets}) == 1


@given(WAITING_ROOMS)
def test_no_six_that_fit_are_left_waiting(waiting: list[Waiting]) -> None:
    seated = {ticket for match in made_from(waiting) for ticket in match.tickets}

    left = [ticket for ticket in waiting if ticket not in seated]

    assert not any(len({each.queue for each in six}) == 1 for six in combinations(left, SEATS))


@given(WAITING_ROOMS)
def test_a_ticket_is_in_one_match_at_most_and_a_match_is_of_one_queue(waiting: list[Waiting]) -> None:
    made = made_from(waiting)

    seated = [ticket for match in made for ticket in match.tickets]
    assert len(seated) == len(set(seated)) == SEATS * len(made)
    assert all(ticket.queue == match.queue for match in made for ticket in match.tickets)
    assert len({match.table_id for match in made}) == len(made)


@given(WAITING_ROOMS)
def test_nobody_is_passed_over_for_someone_younger(waiting: list[Waiting]) -> None:
    seated = {ticket for match in made_from(waiting) for ticket in match.tickets}

    for left in set(waiting) - seated:
        assert all(age(ticket) < age(left) for ticket in seated if ticket.queue == left.queue)


@given(WAITING_ROOMS, SHUFFLES)
def test_the_order_in_which_tickets_are_told_makes_no_difference(waiting: list[Waiting], shuffles: Random) -> None:
    told = [match.tickets for match in made_from(waiting)]
    shuffled = list(waiting)
    shuffles.shuffle(shuffled)

    assert sorted(match.tickets[0].ticket_id for match in made_from(shuffled)) == sorted(
        tickets[0].ticket_id for tickets in told
    )


@given(WAITING_ROOMS, SHUFFLES)
def test_whoever_draws_decides_the_seats(waiting: list[Waiting], shuffles: Random) -> None:
    def draw(six: Sequence[Waiting]) -> Sequence[Waiting]:
        drawn.append(shuffles.sample(list(six), SEATS))
        return drawn[-1]

    drawn: list[list[Waiting]] = []
    made = matches(waiting, draw, uuid7)

    assert [list(match.tickets) for match in made] == drawn
