"""Every promise of the bus's port about requests and live messages, held by every adapter."""

from __future__ import annotations

import asyncio

import pytest

from engine.runtime.bus import (
    Bus,
    HandlerFailed,
    Message,
    NoResponders,
    RequestTimedOut,
    Subscription,
)
from tests.support.buses import SOON, Inbox, echo


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
