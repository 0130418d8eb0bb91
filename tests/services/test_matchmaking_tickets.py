"""Tickets from queueing to their end, on a real database."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import NoReturn
from uuid import uuid4

import pytest
from psycopg_pool import AsyncConnectionPool

from engine.runtime.faults import Busy, MalformedRequest, Unavailable
from services.matchmaking.rounds import LostClaim
from services.matchmaking.tickets import AlreadyQueued, AlreadySeated, State, Ticket, TicketNotFound
from tests.fixtures.facts import Table, delivered
from tests.services.matchmaking_replica import JINAN, POLICY, SHANDONG, Replica

SIX = [f"p{number}" for number in range(6)]


@pytest.fixture
def replica(matchmaking_pool: AsyncConnectionPool) -> Replica:
    return Replica(matchmaking_pool)


async def test_six_compatible_tickets_become_a_table(replica: Replica) -> None:
    tickets = await replica.queue_all(SIX)

    await replica.matcher.sweep()

    ended = [await replica.look(ticket) for ticket in tickets]
    assert {ticket.state for ticket in ended} == {State.MATCHED}
    assert {ticket.seat for ticket in ended} == set(range(6))
    (found,) = await replica.announced()
    assert {str(ticket.table_id) for ticket in ended} == {found.table_id}
    assert [found.players[ticket.seat or 0] for ticket in ended] == SIX
    assert (found.variant_key, found.deals) == ("shandong", 4)


async def test_the_six_oldest_go_first(replica: Replica) -> None:
    tickets = await replica.queue_all([f"p{number}" for number in range(8)])

    await replica.matcher.sweep()

    ended = [await replica.look(ticket) for ticket in tickets]
    assert [ticket.state for ticket in ended] == [State.MATCHED] * 6 + [State.WAITING] * 2


async def test_tickets_of_different_queues_do_not_meet(replica: Replica) -> None:
    await replica.queue_all(SIX[:3], SHANDONG)
    await replica.queue_all(SIX[3:], JINAN)

    await replica.matcher.sweep()

    assert await replica.announced() == []


async def test_the_same_command_gives_the_same_ticket_even_at_once(replica: Replica) -> None:
    command_id = uuid4()

    tickets = await asyncio.gather(*(replica.office.create("ann", command_id, "shandong", 0) for _ in range(8)))

    assert len(set(tickets)) == 1


async def test_the_same_command_gives_the_same_ticket_after_its_end(replica: Replica) -> None:
    command_id = uuid4()
    ticket = await replica.office.create("ann", command_id, "shandong", 0)
    await replica.office.cancel("ann", ticket.ticket_id)

    again = await replica.office.create("ann", command_id, "shandong", 0)

    assert (again.ticket_id, again.state) == (ticket.ticket_id, State.CANCELLED)


async def test_a_player_has_one_active_ticket(replica: Replica) -> None:
    async def attempt() -> Ticket | AlreadyQueued:
        try:
            return await replica.queue("ann")
        except AlreadyQueued as fault:
            return fault

    outcomes = await asyncio.gather(*(attempt() for _ in range(8)))

    (ticket,) = [outcome for outcome in outcomes if isinstance(outcome, Ticket)]
    faults = [outcome for outcome in outcomes if isinstance(outcome, AlreadyQueued)]
    assert [fault.metadata for fault in faults] == [{"ticket_id": str(ticket.ticket_id)}] * 7


@pytest.mark.parametrize(("variant_key", "deals"), [("poker", 4), ("", 4), ("shandong", 33)])
async def test_what_is_not_offered_cannot_be_queued_for(replica: Replica, variant_key: str, deals: int) -> None:
    with pytest.raises(MalformedRequest):
        await replica.office.create("ann", uuid4(), variant_key, deals)


async def test_a_ticket_is_nobody_elses(replica: Replica) -> None:
    ticket = await replica.queue("ann")

    with pytest.raises(TicketNotFound):
        await replica.office.cancel("bob", ticket.ticket_id)
    with pytest.raises(TicketNotFound):
        await anext(replica.office.watch("bob", ticket.ticket_id))


async def test_a_cancelled_ticket_is_never_matched(replica: Replica) -> None:
    tickets = await replica.queue_all(SIX)

    cancelled = await replica.office.cancel("p0", tickets[0].ticket_id)
    await replica.matcher.sweep()

    assert cancelled.state is State.CANCELLED
    assert await replica.announced() == []
    assert (await replica.office.cancel("p0", tickets[0].ticket_id)).state is State.CANCELLED


async def test_a_matched_ticket_answers_a_cancellation_with_its_table(replica: Replica) -> None:
    tickets = await replica.queue_all(SIX)
    await replica.matcher.sweep()

    late = await replica.office.cancel("p0", tickets[0].ticket_id)

    assert late.state is State.MATCHED
    assert str(late.table_id) == (await replica.announced())[0].table_id


async def test_a_round_that_fails_half_way_leaves_all_waiting_with_their_age(replica: Replica) -> None:
    tickets = await replica.queue_all(SIX)
    replica.rounds._announce = fail

    await replica.matcher.sweep()

    assert [await replica.look(ticket) for ticket in tickets] == tickets
    assert replica.registry.get_sample_value("gouji_matchmaking_troubles_total") == 1


async def test_a_queue_that_fails_does_not_stop_the_others(replica: Replica) -> None:
    await replica.queue_all(SIX, JINAN)
    await replica.queue_all([f"q{number}" for number in range(6)], SHANDONG)
    announce = replica.rounds._announce
    replica.rounds._announce = lambda match: fail() if match.queue == JINAN else announce(match)

    await replica.matcher.sweep()

    assert [found.variant_key for found in await replica.announced()] == ["shandong"]


def fail(*_: object) -> NoReturn:
    raise LostClaim


async def test_tickets_for_what_is_no_longer_offered_are_set_aside(replica: Replica) -> None:
    retired = await replica.queue_all(SIX, JINAN)
    await replica.queue_all([f"q{number}" for number in range(6)])
    without_jinan = Replica(replica.pool, type(POLICY)(frozenset({"shandong"})))

    await without_jinan.matcher.sweep()

    assert {(await replica.look(ticket)).state for ticket in retired} == {State.EXPIRED}
    assert len(await replica.announced()) == 1
    assert without_jinan.registry.get_sample_value("gouji_matchmaking_poisoned_total") == 6


async def test_a_matched_player_cannot_queue_until_his_match_has_ended(replica: Replica) -> None:
    tickets = await replica.queue_all(SIX)
    await replica.matcher.sweep()
    table = Table((await replica.look(tickets[0])).table_id or uuid4(), SIX)

    with pytest.raises(AlreadySeated):
        await replica.queue("p0")
    await replica.intake.take(delivered(table.opened(), sequence=1))
    with pytest.raises(AlreadySeated):
        await replica.queue("p0")
    await replica.intake.take(delivered(table.finished(), sequence=2))

    assert (await replica.queue("p0")).state is State.WAITING


async def test_who_sits_down_at_a_ranked_table_is_withdrawn(replica: Replica) -> None:
    ticket = await replica.queue("p0")

    await replica.intake.take(delivered(Table(uuid4(), SIX).opened()))

    assert (await replica.look(ticket)).state is State.CANCELLED


async def test_an_unranked_table_keeps_nobody_from_queueing(replica: Replica) -> None:
    await replica.intake.take(delivered(Table(uuid4(), SIX, ranked=False).opened()))

    assert (await replica.queue("p0")).state is State.WAITING


async def test_who_was_replaced_at_his_table_may_queue(replica: Replica) -> None:
    table = Table(uuid4(), SIX)
    await replica.intake.take(delivered(table.opened()))
    table.players[0] = "substitute"

    await replica.intake.take(delivered(table.deal([0, 1, 2, 3, 4, 5]), sequence=2))

    assert (await replica.queue("p0")).state is State.WAITING
    with pytest.raises(AlreadySeated):
        await replica.queue("substitute")


async def test_a_ticket_of_a_player_who_sits_elsewhere_is_passed_over(replica: Replica) -> None:
    tickets = await replica.queue_all([*SIX, "p6"])
    await replica.execute("insert into seated (table_id, player_id, confirmed) values (gen_random_uuid(), 'p0', true)")

    await replica.matcher.sweep()

    assert (await replica.look(tickets[0])).state is State.CANCELLED
    assert {(await replica.look(ticket)).state for ticket in tickets[1:]} == {State.MATCHED}


async def test_a_match_whose_table_never_opens_lets_its_players_go(replica: Replica) -> None:
    await replica.queue_all(SIX)
    await replica.matcher.sweep()

    await asyncio.sleep(0.4)
    await replica.keeper.sweep(may_expire=False)

    assert (await replica.queue("p0")).state is State.WAITING
    assert replica.registry.get_sample_value("gouji_matchmaking_unopened_total") == 1


async def test_a_ticket_without_a_sign_of_life_expires(replica: Replica) -> None:
    ticket = await replica.queue("ann")

    await asyncio.sleep(0.4)
    await replica.keeper.sweep(may_expire=True)

    assert (await replica.look(ticket)).state is State.EXPIRED
    assert (await replica.queue("ann")).state is State.WAITING


async def test_nothing_expires_before_signs_of_life_could_come_in(replica: Replica) -> None:
    ticket = await replica.queue("ann")
    await asyncio.sleep(0.4)

    keeping = asyncio.create_task(replica.keeper.run())
    await asyncio.sleep(0.1)
    keeping.cancel()

    assert (await replica.look(ticket)).state is State.WAITING


async def test_an_open_watch_keeps_a_ticket_alive(replica: Replica) -> None:
    ticket = await replica.queue("ann")
    looking = asyncio.create_task(replica.watches.run())

    async with aclosing(replica.office.watch("ann", ticket.ticket_id)) as watch:
        await anext(watch)
        waiting = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0.6)
        await replica.keeper.sweep(may_expire=True)
        assert (await replica.look(ticket)).state is State.WAITING
        waiting.cancel()
        await asyncio.wait({waiting})
    looking.cancel()

    await asyncio.sleep(0.4)
    await replica.keeper.sweep(may_expire=True)
    assert (await replica.look(ticket)).state is State.EXPIRED


async def test_an_ended_ticket_is_forgotten_after_a_while(replica: Replica) -> None:
    ticket = await replica.queue("ann")
    await replica.office.cancel("ann", ticket.ticket_id)

    await asyncio.sleep(0.4)
    await replica.keeper.sweep(may_expire=False)

    with pytest.raises(TicketNotFound):
        await replica.look(ticket)


async def test_a_watch_shows_the_ticket_and_its_end_whichever_replica_matched(replica: Replica) -> None:
    here, there = replica, Replica(replica.pool)
    loops = [asyncio.create_task(here.watches.run()), asyncio.create_task(there.matcher.run())]
    tickets = await here.queue_all(SIX[:5])

    async def seen() -> list[State]:
        return [ticket.state async for ticket in here.office.watch("p0", tickets[0].ticket_id)]

    watching = asyncio.create_task(seen())
    await asyncio.sleep(0.1)
    await here.queue("p5")

    assert await asyncio.wait_for(watching, 5) == [State.WAITING, State.MATCHED]
    assert len(here.watches) == 0
    for loop in loops:
        loop.cancel()


async def test_too_many_watches_are_refused(replica: Replica) -> None:
    ticket = await replica.queue("ann")
    async with (
        aclosing(replica.office.watch("ann", ticket.ticket_id)) as first,
        aclosing(replica.office.watch("ann", ticket.ticket_id)) as second,
    ):
        await anext(first)
        await anext(second)

        with pytest.raises(Busy):
            await anext(replica.office.watch("ann", ticket.ticket_id))

    assert len(replica.watches) == 0


async def test_a_replica_that_goes_sends_its_watchers_away(replica: Replica) -> None:
    ticket = await replica.queue("ann")
    async with aclosing(replica.office.watch("ann", ticket.ticket_id)) as watch:
        await anext(watch)
        next_change = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0.05)

        await replica.watches.close()

        with pytest.raises(Unavailable):
            await next_change
        with pytest.raises(Unavailable):
            await anext(replica.office.watch("ann", ticket.ticket_id))
