"""Every promise of the bus's port about facts and closing, held by every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from engine.runtime import subjects
from engine.runtime.bus import (
    Bus,
    BusUnavailable,
    FactMessage,
    NoResponders,
    OutOfSequence,
    Subscription,
)
from tests.support.buses import SOON, Connect, Inbox, echo, published


async def test_a_fact_gets_the_next_sequence_of_its_stream(bus: Bus) -> None:
    one, two = subjects.fact(uuid4()), subjects.fact(uuid4())

    sequences = [await bus.publish_fact(subject, b"", event_id=uuid4().hex) for subject in (one, two, one)]

    assert sequences == [sequences[0], sequences[0] + 1, sequences[0] + 2]


async def test_the_same_event_is_stored_once(bus: Bus, other: Bus) -> None:
    subject, inbox = subjects.fact(uuid4()), Inbox()
    first = await bus.publish_fact(subject, b"fact", event_id="table:7", expected_sequence=0)

    again = await other.publish_fact(subject, b"fact", event_id="table:7", expected_sequence=0)

    await bus.publish_fact(subject, b"end", event_id="table:8", expected_sequence=first)
    await bus.consume(subject, "reader", inbox.take)
    assert again == first
    assert await inbox.holds(2) == [b"fact", b"end"]


@pytest.mark.parametrize(("payload", "previous"), [(b"other", "aa"), (b"fact", "bb")], ids=["payload", "header"])
async def test_another_fact_under_a_known_event_id_is_refused(bus: Bus, payload: bytes, previous: str) -> None:
    subject = subjects.fact(uuid4())
    await bus.publish_fact(subject, b"fact", event_id="table:7", expected_sequence=0, headers={"Previous": "aa"})

    with pytest.raises(OutOfSequence):
        await bus.publish_fact(
            subject, payload, event_id="table:7", expected_sequence=0, headers={"Previous": previous}
        )


async def test_the_expected_sequence_is_that_of_the_very_subject(bus: Bus) -> None:
    one, two = subjects.fact(uuid4()), subjects.fact(uuid4())
    first = await bus.publish_fact(one, b"", event_id="one:1", expected_sequence=0)
    await bus.publish_fact(two, b"", event_id="two:1", expected_sequence=0)

    assert await bus.publish_fact(one, b"", event_id="one:2", expected_sequence=first) == first + 2


@pytest.mark.parametrize("offset", [-1, 1])
async def test_a_fact_out_of_sequence_is_refused_and_not_stored(bus: Bus, offset: int) -> None:
    subject = subjects.fact(uuid4())
    await published(bus, b"", subject=subject)
    last = await bus.publish_fact(subject, b"mine", event_id="one:2")

    with pytest.raises(OutOfSequence):
        await bus.publish_fact(subject, b"other", event_id="one:3", expected_sequence=last + offset)

    newest = await bus.last_fact(subject)
    assert newest is not None
    assert newest.payload == b"mine"


async def test_a_first_fact_is_refused_where_there_are_facts(bus: Bus) -> None:
    subject = await published(bus, b"fact")

    with pytest.raises(OutOfSequence):
        await bus.publish_fact(subject, b"other", event_id="other", expected_sequence=0)


async def test_the_last_fact_of_a_subject_is_found_with_its_headers(bus: Bus) -> None:
    subject = await published(bus, b"old")
    sequence = await bus.publish_fact(subject, b"new", event_id="new", headers={"Gouji-Previous-Hash": "ab"})
    await published(bus, b"of another subject")

    newest = await bus.last_fact(subject)

    assert newest is not None
    assert (newest.subject, newest.payload, newest.sequence) == (subject, b"new", sequence)
    assert newest.headers["Gouji-Previous-Hash"] == "ab"
    assert newest.headers["Nats-Msg-Id"] == "new"


async def test_a_subject_without_facts_has_no_last_one(bus: Bus) -> None:
    assert await bus.last_fact(subjects.fact(uuid4())) is None


async def test_the_facts_of_a_subject_are_found_one_after_the_other(bus: Bus) -> None:
    subject = await published(bus, b"one")
    await published(bus, b"of another subject")
    await bus.publish_fact(subject, b"two", event_id="two", headers={"Gouji-Previous-Hash": "ab"})

    first = await bus.fact_after(subject, 0)
    assert first is not None
    second = await bus.fact_after(subject, first.sequence)
    assert second is not None

    assert (first.payload, second.payload) == (b"one", b"two")
    assert second == await bus.last_fact(subject)
    assert await bus.fact_after(subject, second.sequence) is None
    assert await bus.fact_after(subjects.fact(uuid4()), 0) is None


async def test_a_subject_that_no_stream_keeps_is_the_callers_mistake(bus: Bus) -> None:
    with pytest.raises(LookupError):
        await bus.publish_fact("nowhere.at.all", b"", event_id="one")


async def test_facts_are_delivered_from_the_beginning_in_order(bus: Bus, other: Bus) -> None:
    inbox = Inbox()
    before = [str(number).encode() for number in range(20)]
    after = [str(number).encode() for number in range(20, 40)]
    subject = await published(bus, *before)
    await other.consume(subjects.FACTS, "reader", inbox.take)

    await published(bus, *after, subject=subject)

    assert await inbox.holds(40) == before + after
    sequences = [fact.sequence for fact in inbox.facts]
    assert sequences == sorted(sequences)
    assert {fact.deliveries for fact in inbox.facts} == {1}
    assert {fact.subject for fact in inbox.facts} == {subject}


async def test_only_facts_that_match_are_delivered(bus: Bus) -> None:
    inbox = Inbox()
    wanted = subjects.fact(uuid4())
    await published(bus, b"of another subject")
    await published(bus, b"of another stream", subject=subjects.match(uuid4()))
    await published(bus, b"wanted", subject=wanted)

    await bus.consume(wanted, "reader", inbox.take)

    assert await inbox.holds(1) == [b"wanted"]


async def test_facts_are_handled_one_at_a_time(bus: Bus) -> None:
    now, most, done = 0, 0, asyncio.Event()

    async def count(message: FactMessage) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        if message.payload == b"end":
            done.set()

    await published(bus, b"", b"", b"", b"end")
    await bus.consume(subjects.FACTS, "reader", count)
    async with asyncio.timeout(SOON):
        await done.wait()

    assert most == 1


async def test_a_fact_whose_handler_raised_comes_again_and_keeps_nobody_waiting(bus: Bus) -> None:
    inbox = Inbox(refuse={b"bad": 2})
    await published(bus, b"one", b"bad", b"two")

    await bus.consume(subjects.FACTS, "reader", inbox.take)

    assert await inbox.holds(3) == [b"one", b"two", b"bad"]
    assert [fact.deliveries for fact in inbox.facts if fact.payload == b"bad"] == [1, 2, 3]


async def test_a_durable_name_keeps_its_position(connect: Connect) -> None:
    first, second, inbox = await connect(), await connect(), Inbox()
    await first.consume(subjects.FACTS, "reader", inbox.take)
    subject = await published(first, b"one", b"two")
    await inbox.holds(2)
    await first.close()

    await published(second, b"three", subject=subject)
    after = Inbox()
    await second.consume(subjects.FACTS, "reader", after.take)

    assert await after.holds(1) == [b"three"]


async def test_a_fact_that_was_not_acknowledged_comes_again_after_a_restart(connect: Connect) -> None:
    first, second, started = await connect(), await connect(), asyncio.Event()

    async def refuse(_: FactMessage) -> None:
        started.set()
        raise ValueError("refused")

    subscription = await first.consume(subjects.FACTS, "reader", refuse)
    await published(first, b"fact")
    await started.wait()
    await subscription.stop()
    inbox = Inbox()
    await second.consume(subjects.FACTS, "reader", inbox.take)

    assert await inbox.holds(1) == [b"fact"]


async def test_two_names_each_get_every_fact(bus: Bus, other: Bus) -> None:
    ranking, matchmaking = Inbox(), Inbox()
    await bus.consume(subjects.FACTS, "ranking", ranking.take)
    await other.consume(subjects.FACTS, "matchmaking", matchmaking.take)

    await published(bus, b"one", b"two")

    assert await ranking.holds(2) == await matchmaking.holds(2) == [b"one", b"two"]


async def test_consumers_of_one_name_share_the_work(bus: Bus, other: Bus) -> None:
    one, two, both = Inbox(), Inbox(), Inbox()

    def sharing(inbox: Inbox) -> Callable[[FactMessage], Awaitable[None]]:
        async def take(message: FactMessage) -> None:
            await asyncio.sleep(0.01)
            await inbox.take(message)
            await both.take(message)

        return take

    await bus.consume(subjects.FACTS, "reader", sharing(one))
    await other.consume(subjects.FACTS, "reader", sharing(two))
    sent = [str(number).encode() for number in range(40)]
    await published(bus, *sent)

    assert sorted(await both.holds(40)) == sorted(sent)
    assert one.payloads
    assert two.payloads


async def test_a_stopped_consumer_finishes_what_is_under_way_and_takes_nothing_more(bus: Bus) -> None:
    started, release, inbox = asyncio.Event(), asyncio.Event(), Inbox()

    async def slow(message: FactMessage) -> None:
        started.set()
        await release.wait()
        await inbox.take(message)

    subscription = await bus.consume(subjects.FACTS, "reader", slow)
    await published(bus, b"one", b"two")
    await started.wait()
    stopping = asyncio.create_task(subscription.stop())
    await asyncio.sleep(0.05)
    release.set()
    await stopping
    after = Inbox()
    await bus.consume(subjects.FACTS, "reader", after.take)

    assert inbox.payloads == [b"one"]
    assert await after.holds(1) == [b"two"]


async def test_a_consumer_may_stop_its_own_subscription(bus: Bus) -> None:
    taken, subscriptions = Inbox(), list[Subscription]()

    async def take_once(fact: FactMessage) -> None:
        await subscriptions[0].stop()
        await taken.take(fact)

    subscriptions.append(await bus.consume(subjects.FACTS, "reader", take_once))
    await published(bus, b"one", b"two")
    async with asyncio.timeout(2):
        await taken.holds(1)
    after = Inbox()
    await bus.consume(subjects.FACTS, "reader", after.take)

    assert taken.payloads == [b"one"]
    assert await after.holds(1) == [b"two"]


async def test_a_consumer_that_waits_gets_a_fact_without_delay(bus: Bus, other: Bus) -> None:
    inbox = Inbox()
    await other.consume(subjects.FACTS, "reader", inbox.take)
    await asyncio.sleep(0.2)

    await published(bus, b"fact")

    async with asyncio.timeout(0.5):
        assert await inbox.holds(1) == [b"fact"]


async def test_a_closed_bus_says_that_it_is_unavailable(bus: Bus) -> None:
    await bus.close()
    await bus.close()

    with pytest.raises(BusUnavailable):
        await bus.publish("live.table", b"")
    with pytest.raises(BusUnavailable):
        await bus.request("ask.me", b"", timeout=1)
    with pytest.raises(BusUnavailable):
        await bus.publish_fact(subjects.fact(uuid4()), b"", event_id="one")


async def test_closing_stops_every_subscription(connect: Connect) -> None:
    closing, bus, inbox = await connect(), await connect(), Inbox()
    await closing.serve("ask.me", echo)
    await closing.subscribe("live.table", inbox.take)
    await closing.consume(subjects.FACTS, "reader", inbox.take)
    await closing.close()

    await bus.publish("live.table", b"")
    await published(bus, b"fact")
    with pytest.raises(NoResponders):
        await bus.request("ask.me", b"", timeout=1)

    assert inbox.payloads == []
