"""Tickets from queueing to their end, on a real database."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import NoReturn
from uuid import uuid4

import pytest
from psycopg_pool import AsyncConnectionPool

from engine.runtime.faults import Busy, MalformedRequest, Unavailable
from services.matchmaking.rounds import LostClaim
from services.matchmaking.tickets import AlreadyQueued, AlreadySeated, State, Ticket, TicketNotFound
from tests.fixtures.facts import Table
from tests.services.matchmaking_replica import JINAN, POLICY, SHANDONG, Replica, give_up, table_of

SIX = [f"p{number}" for number in range(6)]
LONG = 3600
"""Seconds for which all has been well."""


@pytest.fixture
def replica(matchmaking_pool: AsyncConnectionPool) -> Replica:
    return Replica(matchmaking_pool)


async def test_six_compatible_tickets_become_a_table(replica: Replica) -> None:
    tickets, table = await replica.propose(SIX)

    await replica.tell(table.opened())

    ended = [await replica.look(ticket) for ticket in tickets]
    assert {ticket.state for ticket in ended} == {State.MATCHED}
    assert {ticket.seat for ticket in ended} == set(range(6))
    (found,) = await replica.announced()
    assert {str(ticket.table_id) for ticket in ended} == {found.table_id}
    assert [found.players[ticket.seat or 0] for ticket in ended] == SIX
    assert (found.variant_key, found.deals) == ("shandong", 4)


async def test_a_proposed_ticket_names_no_table_before_it_is_open(replica: Replica) -> None:
    tickets, table = await replica.propose(SIX)

    proposed = [await replica.look(ticket) for ticket in tickets]
    assert proposed == [replace(ticket, state=State.PROPOSED) for ticket in tickets]
    await replica.tell(table.opened())

    assert {(await replica.look(ticket)).table_id for ticket in tickets} == {table.table_id}


async def test_the_engine_is_told_until_when_it_may_open_a_match(replica: Replica) -> None:
    await replica.propose(SIX)

    (found,) = await replica.announced()

    assert found.open_before_ms == found.at_ms + 200


async def test_the_six_oldest_go_first(replica: Replica) -> None:
    tickets = await replica.queue_all([f"p{number}" for number in range(8)])

    await replica.matcher.sweep()

    ended = [await replica.look(ticket) for ticket in tickets]
    assert [ticket.state for ticket in ended] == [State.PROPOSED] * 6 + [State.WAITING] * 2


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


async def test_a_proposed_ticket_cannot_be_cancelled(replica: Replica) -> None:
    tickets, table = await replica.propose(SIX)

    late = await replica.office.cancel("p0", tickets[0].ticket_id)
    await replica.tell(table.opened())

    assert late.state is State.PROPOSED
    assert (await replica.look(tickets[0])).state is State.MATCHED


async def test_a_matched_ticket_answers_a_cancellation_with_its_table(replica: Replica) -> None:
    tickets, table = await replica.propose(SIX)
    await replica.tell(table.opened())

    late = await replica.office.cancel("p0", tickets[0].ticket_id)

    assert (late.state, late.table_id) == (State.MATCHED, table.table_id)


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
    _, table = await replica.propose(SIX)

    with pytest.raises(AlreadyQueued):
        await replica.queue("p0")
    await replica.tell(table.opened())
    with pytest.raises(AlreadySeated):
        await replica.queue("p0")
    await replica.tell(table.finished())

    assert (await replica.queue("p0")).state is State.WAITING


async def test_who_sits_down_at_a_ranked_table_is_withdrawn(replica: Replica) -> None:
    ticket = await replica.queue("p0")

    await replica.tell(Table(uuid4(), SIX).opened())

    assert (await replica.look(ticket)).state is State.CANCELLED


async def test_an_unranked_table_keeps_nobody_from_queueing(replica: Replica) -> None:
    await replica.tell(Table(uuid4(), SIX, ranked=False).opened())

    assert (await replica.queue("p0")).state is State.WAITING


async def test_who_was_replaced_at_his_table_may_queue(replica: Replica) -> None:
    table = Table(uuid4(), SIX)
    await replica.tell(table.opened())
    table.players[0] = "substitute"

    await replica.tell(table.deal([0, 1, 2, 3, 4, 5]))

    assert (await replica.queue("p0")).state is State.WAITING
    with pytest.raises(AlreadySeated):
        await replica.queue("substitute")


async def test_a_ticket_of_a_player_who_sits_elsewhere_is_passed_over(replica: Replica) -> None:
    tickets = await replica.queue_all([*SIX, "p6"])
    await replica.execute("insert into seated (table_id, player_id) values (gen_random_uuid(), 'p0')")

    await replica.matcher.sweep()

    assert (await replica.look(tickets[0])).state is State.CANCELLED
    assert {(await replica.look(ticket)).state for ticket in tickets[1:]} == {State.PROPOSED}


async def test_a_ticket_without_a_sign_of_life_expires(replica: Replica) -> None:
    ticket = await replica.queue("ann")

    await asyncio.sleep(0.4)
    await replica.keeper.sweep(LONG)

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
        await replica.keeper.sweep(LONG)
        assert (await replica.look(ticket)).state is State.WAITING
        waiting.cancel()
        await asyncio.wait({waiting})
    looking.cancel()

    await asyncio.sleep(0.4)
    await replica.keeper.sweep(LONG)
    assert (await replica.look(ticket)).state is State.EXPIRED


async def test_an_ended_ticket_is_forgotten_after_a_while(replica: Replica) -> None:
    ticket = await replica.queue("ann")
    await replica.office.cancel("ann", ticket.ticket_id)

    await asyncio.sleep(0.4)
    await replica.keeper.sweep(0)

    with pytest.raises(TicketNotFound):
        await replica.look(ticket)


async def test_a_watch_shows_every_state_whichever_replica_matched(replica: Replica) -> None:
    here, there = replica, Replica(replica.pool)
    looking = asyncio.create_task(here.watches.run())
    tickets = await here.queue_all(SIX)

    async with aclosing(here.office.watch("p0", tickets[0].ticket_id)) as watch, asyncio.timeout(5):
        seen = [await anext(watch)]
        await there.matcher.sweep()
        seen.append(await anext(watch))
        await there.tell(table_of((await there.announced())[0]).opened())
        seen += [ticket async for ticket in watch]

    assert [ticket.state for ticket in seen] == [State.WAITING, State.PROPOSED, State.MATCHED]
    assert len(here.watches) == 0
    looking.cancel()


async def test_a_watch_that_begins_at_a_proposal_shows_what_becomes_of_it(replica: Replica) -> None:
    looking = asyncio.create_task(replica.watches.run())
    tickets, _ = await replica.propose(SIX)

    async with aclosing(replica.office.watch("p0", tickets[0].ticket_id)) as watch, asyncio.timeout(5):
        assert (await anext(watch)).state is State.PROPOSED
        await give_up(replica)
        assert await anext(watch) == tickets[0]
    looking.cancel()


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

        for change in (next_change, anext(replica.office.watch("ann", ticket.ticket_id))):
            with pytest.raises(Unavailable) as ended:
                await change
            assert ended.value.reason == "DRAINING"
