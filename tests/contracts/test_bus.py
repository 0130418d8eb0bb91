"""Every promise of the bus's port, held by every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from engine.runtime import subjects
from engine.runtime.bus import (
    Bus,
    BusUnavailable,
    FactMessage,
    HandlerFailed,
    Message,
    NoResponders,
    OutOfSequence,
    RequestTimedOut,
    Subscription,
)
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.bus_split import SplitBus

Connect = Callable[[], Awaitable[Bus]]

PAUSE = 0.1
SOON = 5.0


@pytest.fixture(params=["memory", "nats", "split"])
def connect_one(request: pytest.FixtureRequest) -> Connect:
    if request.param == "memory":
        return _memory()
    nats = _nats(request.getfixturevalue("nats_url"))
    return nats if request.param == "nats" else _split(_memory(), nats)


@pytest.fixture
async def connect(connect_one: Connect) -> AsyncIterator[Connect]:
    """Connects one more client to the same bus; all are closed at the end."""
    async with AsyncExitStack() as stack:

        async def connect_and_close() -> Bus:
            bus = await connect_one()
            stack.push_async_callback(bus.close)
            return bus

        yield connect_and_close


def _memory() -> Connect:
    broker = Broker(pause=PAUSE)

    async def connect_one() -> Bus:
        return MemoryBus(broker)

    return connect_one


def _nats(url: str) -> Connect:
    async def connect_one() -> Bus:
        return await NatsBus.connect(NatsOptions((url,), pause=PAUSE))

    return connect_one


def _split(inside: Connect, outside: Connect) -> Connect:
    async def connect_one() -> Bus:
        return SplitBus(await inside(), await outside(), ("outward.*",))

    return connect_one


@pytest.fixture
async def bus(connect: Connect) -> Bus:
    return await connect()


@pytest.fixture
async def other(connect: Connect) -> Bus:
    return await connect()


class Inbox:
    """Collects what a handler gets; can be told to refuse some payloads a number of times."""

    def __init__(self, refuse: dict[bytes, int] | None = None) -> None:
        self.facts: list[FactMessage] = []
        self.payloads: list[bytes] = []
        self._refuse = refuse or {}
        self._arrived = asyncio.Condition()

    async def take(self, message: Message | FactMessage) -> None:
        if isinstance(message, FactMessage):
            self.facts.append(message)
        if self._refuse.get(message.payload, 0) > 0:
            self._refuse[message.payload] -= 1
            raise ValueError("refused")
        async with self._arrived:
            self.payloads.append(message.payload)
            self._arrived.notify_all()

    async def holds(self, number: int) -> list[bytes]:
        async with asyncio.timeout(SOON), self._arrived:
            await self._arrived.wait_for(lambda: len(self.payloads) >= number)
        return self.payloads


async def echo(message: Message) -> bytes:
    return message.payload + message.headers.get("Suffix", "").encode()


async def published(bus: Bus, *payloads: bytes, subject: str | None = None) -> str:
    subject = subject or subjects.fact(uuid4())
    for payload in payloads:
        await bus.publish_fact(subject, payload, event_id=uuid4().hex)
    return subject


async def test_a_request_is_answered_by_who_serves_the_subject(bus: Bus, other: Bus) -> None:
    await other.serve("ask.me", echo)

    assert await bus.request("ask.me", b"hello", timeout=SOON, headers={"Suffix": "!"}) == b"hello!"


async def test_a_client_may_ask_itself(bus: Bus) -> None:
    await bus.serve("ask.me", echo)

    assert await bus.request("ask.me", b"hello", timeout=SOON) == b"hello"


async def test_a_subject_that_nobody_serves_is_told_at_once(bus: Bus) -> None:
    async with asyncio.timeout(1):
        with pytest.raises(NoResponders):
            await bus.request("ask.nobody", b"", timeout=60)


async def test_a_subject_that_is_no_longer_served_is_told_at_once(bus: Bus, other: Bus) -> None:
    subscription = await other.serve("ask.me", echo)
    await subscription.stop()

    async with asyncio.timeout(1):
        with pytest.raises(NoResponders):
            await bus.request("ask.me", b"", timeout=60)


async def test_an_answer_that_is_late_is_not_waited_for(bus: Bus, other: Bus) -> None:
    release = asyncio.Event()

    async def slow(_: Message) -> bytes:
        await release.wait()
        return b""

    await other.serve("ask.me", slow)

    with pytest.raises(RequestTimedOut):
        await bus.request("ask.me", b"", timeout=0.1)
    release.set()


async def test_a_handler_that_raises_is_told_at_once(bus: Bus, other: Bus) -> None:
    async def broken(_: Message) -> bytes:
        raise ValueError("broken")

    await other.serve("ask.me", broken)

    async with asyncio.timeout(1):
        with pytest.raises(HandlerFailed):
            await bus.request("ask.me", b"", timeout=60)


async def test_each_request_reaches_one_of_those_who_serve_the_subject(bus: Bus, other: Bus) -> None:
    asked: list[str] = []

    async def first(_: Message) -> bytes:
        asked.append("first")
        return b""

    async def second(_: Message) -> bytes:
        asked.append("second")
        return b""

    await bus.serve("ask.any", first)
    await other.serve("ask.any", second)
    for _ in range(64):
        await bus.request("ask.any", b"", timeout=SOON)

    assert len(asked) == 64
    assert set(asked) == {"first", "second"}


async def test_no_more_requests_are_handled_at_once_than_allowed(bus: Bus, other: Bus) -> None:
    now, most = 0, 0

    async def count(_: Message) -> bytes:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return b""

    await other.serve("ask.me", count, in_flight=3)
    await asyncio.gather(*(bus.request("ask.me", b"", timeout=SOON) for _ in range(6)))

    assert most == 3


async def test_a_request_that_finds_the_queue_full_is_turned_away_at_once(bus: Bus, other: Bus) -> None:
    release = asyncio.Event()

    async def slow(_: Message) -> bytes:
        await release.wait()
        return b"done"

    await other.serve("ask.me", slow, in_flight=1)
    taken = [asyncio.create_task(bus.request("ask.me", b"", timeout=SOON)) for _ in range(2)]
    await asyncio.sleep(0.2)

    async with asyncio.timeout(1):
        with pytest.raises(NoResponders):
            await bus.request("ask.me", b"", timeout=60)
    release.set()
    assert await asyncio.gather(*taken) == [b"done", b"done"]


async def test_stopping_to_serve_finishes_what_is_under_way(bus: Bus, other: Bus) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def slow(_: Message) -> bytes:
        started.set()
        await release.wait()
        return b"done"

    subscription = await other.serve("ask.me", slow)
    asking = asyncio.create_task(bus.request("ask.me", b"", timeout=SOON))
    await started.wait()
    stopping = asyncio.create_task(subscription.stop())
    await asyncio.sleep(0.05)
    release.set()
    await stopping

    assert await asking == b"done"


async def test_a_cancelled_request_leaves_the_handler_alone(bus: Bus, other: Bus) -> None:
    started, release, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(_: Message) -> bytes:
        started.set()
        await release.wait()
        finished.set()
        return b""

    await other.serve("ask.me", slow)
    asking = asyncio.create_task(bus.request("ask.me", b"", timeout=SOON))
    await started.wait()
    asking.cancel()
    release.set()

    async with asyncio.timeout(SOON):
        await finished.wait()


async def test_live_messages_arrive_in_order(bus: Bus, other: Bus) -> None:
    inbox = Inbox()
    await other.subscribe("live.table", inbox.take)
    sent = [str(number).encode() for number in range(200)]

    for payload in sent:
        await bus.publish("live.table", payload)

    assert await inbox.holds(200) == sent


@pytest.mark.parametrize("pattern", ["live.one.two", "live.*.two", "live.>", "*.one.*"])
async def test_a_live_message_reaches_every_pattern_that_covers_it(bus: Bus, other: Bus, pattern: str) -> None:
    inbox = Inbox()
    await other.subscribe(pattern, inbox.take)

    await bus.publish("live.one.two", b"hello", headers={"Key": "value"})

    assert await inbox.holds(1) == [b"hello"]


@pytest.mark.parametrize("pattern", ["live.one", "live.*", "live.one.two.>", "live.*.three", "*.one"])
async def test_a_live_message_reaches_no_other_pattern(bus: Bus, other: Bus, pattern: str) -> None:
    inbox, covered = Inbox(), Inbox()
    await other.subscribe(pattern, inbox.take)
    await other.subscribe("live.>", covered.take)

    await bus.publish("live.one.two", b"hello")
    await covered.holds(1)

    assert inbox.payloads == []


async def test_a_stopped_subscription_hears_nothing_more(bus: Bus, other: Bus) -> None:
    stopped, heard = Inbox(), Inbox()
    subscription = await other.subscribe("live.table", stopped.take)
    await other.subscribe("live.table", heard.take)
    await subscription.stop()
    await subscription.stop()

    await bus.publish("live.table", b"hello")
    await heard.holds(1)

    assert stopped.payloads == []


async def test_a_listener_may_stop_its_own_subscription(bus: Bus, other: Bus) -> None:
    heard, subscriptions = Inbox(), list[Subscription]()

    async def hear_once(message: Message) -> None:
        await subscriptions[0].stop()
        await heard.take(message)

    subscriptions.append(await other.subscribe("live.table", hear_once))
    await bus.publish("live.table", b"one")
    async with asyncio.timeout(2):
        await heard.holds(1)
    await bus.publish("live.table", b"two")
    await asyncio.sleep(0.1)

    assert heard.payloads == [b"one"]


async def test_a_slow_listener_loses_what_is_beyond_its_bound_and_keeps_the_order(bus: Bus, other: Bus) -> None:
    release, got = asyncio.Event(), Inbox()

    async def slow(message: Message) -> None:
        await release.wait()
        await got.take(message)

    await other.subscribe("live.table", slow, pending=3)
    for number in range(100):
        await bus.publish("live.table", str(number).encode())
    await asyncio.sleep(0.2)
    release.set()
    await got.holds(4)
    await asyncio.sleep(0.1)

    assert got.payloads == [b"0", b"1", b"2", b"3"]


async def test_a_listener_that_raises_hears_the_next_message(bus: Bus, other: Bus) -> None:
    inbox = Inbox(refuse={b"bad": 1})
    await other.subscribe("live.table", inbox.take)

    await bus.publish("live.table", b"bad")
    await bus.publish("live.table", b"good")

    assert await inbox.holds(1) == [b"good"]


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
