"""Matches whose tables open, open late or never open, on a real database."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest
from psycopg_pool import AsyncConnectionPool

from services.matchmaking.tickets import AlreadySeated, State
from tests.services.matchmaking_replica import Replica, give_up, table_of

SIX = [f"p{number}" for number in range(6)]


@pytest.fixture
def replica(matchmaking_pool: AsyncConnectionPool) -> Replica:
    return Replica(matchmaking_pool)


async def test_players_wait_again_with_their_age_when_their_table_does_not_open(replica: Replica) -> None:
    tickets, _ = await replica.propose(SIX)

    await give_up(replica)

    assert [await replica.look(ticket) for ticket in tickets] == tickets
    assert replica.registry.get_sample_value("gouji_matchmaking_unopened_total") == 1


async def test_who_waits_again_goes_before_who_came_meanwhile(replica: Replica) -> None:
    await replica.propose(SIX)
    await replica.queue_all(["late0", "late1"])
    await give_up(replica)

    await replica.matcher.sweep()

    assert list((await replica.announced())[-1].players) == SIX


async def test_no_match_is_given_up_before_the_facts_of_a_stop_can_have_come_in(replica: Replica) -> None:
    tickets, table = await replica.propose(SIX)
    await asyncio.sleep(0.4)

    await replica.keeper.sweep(0)
    await replica.tell(table.opened())

    assert {(await replica.look(ticket)).state for ticket in tickets} == {State.MATCHED}


async def test_who_waits_again_can_cancel(replica: Replica) -> None:
    tickets, _ = await replica.propose(SIX)
    await give_up(replica)

    assert (await replica.office.cancel("p0", tickets[0].ticket_id)).state is State.CANCELLED
    await replica.matcher.sweep()

    assert len(await replica.announced()) == 1


async def test_a_proposed_ticket_that_nobody_watches_expires_when_it_has_to_wait_again(replica: Replica) -> None:
    tickets, _ = await replica.propose(SIX)
    await asyncio.sleep(0.4)

    await replica.keeper.sweep(3600)

    assert {(await replica.look(ticket)).state for ticket in tickets} == {State.EXPIRED}


async def test_a_table_that_opens_too_late_seats_nobody_and_is_to_be_closed(replica: Replica) -> None:
    tickets, late = await replica.propose(SIX)
    await give_up(replica)
    await replica.matcher.sweep()
    again = table_of((await replica.announced())[-1])

    await replica.tell(late.opened())

    assert {(await replica.look(ticket)).state for ticket in tickets} == {State.PROPOSED}
    assert [UUID(found.table_id) for found in await replica.announced() if found.withdrawn] == [late.table_id]
    await replica.tell(again.opened())
    assert {(await replica.look(ticket)).table_id for ticket in tickets} == {again.table_id}
    await replica.tell(late.closed())
    with pytest.raises(AlreadySeated) as refusal:
        await replica.queue("p0")
    assert refusal.value.metadata == {"table_id": str(again.table_id)}


async def test_a_table_that_opened_too_late_keeps_nobody_from_queueing(replica: Replica) -> None:
    tickets, late = await replica.propose(SIX)
    await give_up(replica)
    await replica.office.cancel("p0", tickets[0].ticket_id)

    await replica.tell(late.opened())
    await replica.tell(late.deal([0, 1, 2, 3, 4, 5]))

    assert (await replica.queue("p0")).state is State.WAITING
    assert (await replica.look(tickets[1])).state is State.WAITING


async def test_of_opening_and_giving_up_at_once_exactly_one_happens(replica: Replica) -> None:
    for number in range(20):
        players = [f"{number}-{player}" for player in SIX]
        tickets, table = await replica.propose(players)
        await replica.execute("update match set proposed_at = proposed_at - interval '1 hour'")

        await asyncio.gather(replica.tell(table.opened()), replica.keeper.sweep(0.2))

        outcome = {(await replica.look(ticket)).state for ticket in tickets}
        is_withdrawn = any(found.withdrawn for found in await replica.announced())
        assert outcome == ({State.WAITING} if is_withdrawn else {State.MATCHED})
        await replica.execute("delete from outbox")
        for ticket in tickets:
            await replica.office.cancel(ticket.player_id, ticket.ticket_id)


async def test_of_cancelling_and_giving_up_at_once_the_answer_is_what_happened(replica: Replica) -> None:
    for _ in range(20):
        tickets, _table = await replica.propose(SIX)
        await replica.execute("update match set proposed_at = proposed_at - interval '1 hour'")

        answer, _ = await asyncio.gather(replica.office.cancel("p0", tickets[0].ticket_id), replica.keeper.sweep(0.2))

        assert answer.state in {State.PROPOSED, State.CANCELLED}
        is_cancelled = (await replica.look(tickets[0])).state is State.CANCELLED
        assert is_cancelled == (answer.state is State.CANCELLED)
        for ticket in tickets:
            await replica.office.cancel(ticket.player_id, ticket.ticket_id)
