"""What only a real NATS server can break: it is killed and comes back, and nothing that it acknowledged is lost."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import nats
import pytest
import uvloop
from nats.js import JetStreamContext
from nats.js.errors import BadRequestError, ServerError
from prometheus_client import CollectorRegistry

from deploy.local.nats_server import CONFIG, NatsServer
from engine.runtime import subjects
from engine.runtime.bus import BusUnavailable, FactMessage, Message, NoResponders, OutOfSequence, RequestTimedOut
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.runtime.facts_nats import lay_streams
from tests.support.proxy import FaultyProxy

SOON = 15.0


@pytest.fixture
async def bus(nats_url: str) -> AsyncIterator[NatsBus]:
    bus = await NatsBus.connect(NatsOptions((nats_url,), pause=0.1))
    yield bus
    await bus.close()


@pytest.fixture
async def other(nats_url: str) -> AsyncIterator[NatsBus]:
    bus = await NatsBus.connect(NatsOptions((nats_url,), pause=0.1))
    yield bus
    await bus.close()


async def published_at_last(bus: NatsBus, subject: str, number: int, expected: int) -> int:
    """Publish a fact as an outbox does: again and again until it is acknowledged."""
    while True:
        try:
            return await bus.publish_fact(
                subject, str(number).encode(), event_id=f"{subject}:{number}", expected_sequence=expected
            )
        except BusUnavailable:
            await asyncio.sleep(0.05)


async def answered_at_last(bus: NatsBus, subject: str) -> bytes:
    while True:
        with suppress(BusUnavailable, NoResponders, RequestTimedOut):
            return await bus.request(subject, b"", timeout=0.5)
        await asyncio.sleep(0.05)


class Forgetful(NatsServer):
    """A server that keeps no facts, like one whose disk is full."""

    is_forgetful = True

    def _command(self) -> list[str]:
        if not self.is_forgetful:
            return super()._command()
        bare = self._folder / "bare.conf"
        bare.write_text(re.sub(r"(?ms)^jetstream \{.*?^\}", "", CONFIG.read_text()))
        return [str(bare) if word == str(CONFIG) else word for word in super()._command() if word != "--jetstream"]


async def crash_and_recover(server: NatsServer, down: float) -> None:
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(down)
    await asyncio.to_thread(server.start)


async def test_facts_go_on_through_crashes_of_the_server_none_lost_none_doubled(
    nats_server: NatsServer, bus: NatsBus, other: NatsBus
) -> None:
    subject, seen, done = subjects.rating("ann"), dict[int, bytes](), asyncio.Event()

    async def take(fact: FactMessage) -> None:
        assert seen.setdefault(fact.sequence, fact.payload) == fact.payload
        if len(seen) == 60:
            done.set()

    await other.consume(subjects.RATINGS, "reader", take)

    async def publish() -> list[int]:
        sequences = [0]
        for number in range(60):
            sequences.append(await published_at_last(bus, subject, number, sequences[-1]))
            await asyncio.sleep(0.02)
        return sequences[1:]

    publishing = asyncio.create_task(publish())
    for _ in range(3):
        await asyncio.sleep(0.2)
        await crash_and_recover(nats_server, down=0.1)
    async with asyncio.timeout(40):
        acknowledged = await publishing
        await done.wait()

    assert acknowledged == sorted(set(acknowledged))
    assert [seen[sequence] for sequence in acknowledged] == [str(number).encode() for number in range(60)]


async def test_requests_and_live_messages_resume_after_a_crash(
    nats_server: NatsServer, bus: NatsBus, other: NatsBus
) -> None:
    heard = asyncio.Event()

    async def answer(_: Message) -> bytes:
        return b"here"

    async def hear(_: Message) -> None:
        heard.set()

    await other.serve("gouji.engine.list", answer)
    await other.subscribe("gouji.live.>", hear)
    await crash_and_recover(nats_server, down=0.5)

    async with asyncio.timeout(SOON):
        assert await answered_at_last(bus, "gouji.engine.list") == b"here"
        await bus.publish("gouji.live.table.public", b"")
        await heard.wait()


async def test_while_the_server_is_down_every_call_says_so_at_once(nats_server: NatsServer, bus: NatsBus) -> None:
    await asyncio.to_thread(nats_server.kill)
    try:
        async with asyncio.timeout(SOON):
            while bus.is_connected:  # noqa: ASYNC110 - the driver has no event for it
                await asyncio.sleep(0.01)
        async with asyncio.timeout(0.5):
            with pytest.raises(BusUnavailable):
                await bus.request("gouji.engine.list", b"", timeout=60)
            with pytest.raises(BusUnavailable):
                await bus.publish("gouji.live.table.public", b"")
            with pytest.raises(BusUnavailable):
                await bus.publish_fact(subjects.rating("ann"), b"", event_id="one")
            with pytest.raises(BusUnavailable):
                await bus.last_fact(subjects.rating("ann"))
    finally:
        await asyncio.to_thread(nats_server.start)


async def test_streams_and_consumers_that_were_lost_are_made_again(nats_url: str, bus: NatsBus) -> None:
    got: asyncio.Queue[bytes] = asyncio.Queue()

    async def take(fact: FactMessage) -> None:
        await got.put(fact.payload)

    await bus.consume(subjects.RATINGS, "reader", take)
    operator = await nats.connect(nats_url)
    await operator.jetstream().delete_stream("RATINGS")
    await operator.close()

    async with asyncio.timeout(SOON):
        await published_at_last(bus, subjects.rating("ann"), 1, 0)
        assert await got.get() == b"1"


async def test_a_server_that_keeps_no_facts_serves_everything_else_and_facts_later(
    server_folder: Path,
) -> None:
    registry, got = CollectorRegistry(), asyncio.Queue[bytes]()
    server = Forgetful(server_folder / "forgetful")
    await asyncio.to_thread(server.start)

    async def answer(_: Message) -> bytes:
        return b"here"

    async def take(fact: FactMessage) -> None:
        await got.put(fact.payload)

    def interrupted() -> float | None:
        return registry.get_sample_value("gouji_bus_consumer_interrupted", {"durable": "reader"})

    bus = await NatsBus.connect(NatsOptions((server.url(),), pause=0.1, connect_within=3.0), registry)
    await bus.serve("gouji.engine.list", answer)
    await bus.consume(subjects.RATINGS, "reader", take)
    for refused in (
        bus.publish_fact(subjects.rating("ann"), b"", event_id="one"),
        bus.last_fact(subjects.rating("ann")),
        bus.count_facts(subjects.RATINGS),
    ):
        with pytest.raises(BusUnavailable):
            await refused
    assert await bus.request("gouji.engine.list", b"", timeout=5) == b"here"
    assert interrupted() == 1

    server.is_forgetful = False
    await asyncio.to_thread(server.restart)
    async with asyncio.timeout(SOON):
        await published_at_last(bus, subjects.rating("ann"), 1, 0)
        assert await got.get() == b"1"
    assert interrupted() == 0
    await bus.close()
    await asyncio.to_thread(server.stop)


async def test_the_limits_of_a_stream_that_is_there_are_brought_up_to_date(nats_url: str) -> None:
    operator = await nats.connect(nats_url)
    await operator.jetstream().add_stream(name="RATINGS", subjects=[subjects.RATINGS], max_bytes=1000)

    bus = await NatsBus.connect(NatsOptions((nats_url,)))

    config = (await operator.jetstream().stream_info("RATINGS")).config
    assert config.max_bytes == 1 << 28
    await bus.close()
    await operator.close()


async def test_lost_links_and_facts_are_counted(nats_server: NatsServer, nats_url: str) -> None:
    registry, tries = CollectorRegistry(), list[FactMessage]()
    bus = await NatsBus.connect(NatsOptions((nats_url,), pause=0.05), registry)
    done = asyncio.Event()

    async def take_the_second_time(fact: FactMessage) -> None:
        tries.append(fact)
        if len(tries) == 1:
            raise ValueError("not yet")
        asyncio.get_running_loop().call_soon(done.set)

    await bus.publish_fact(subjects.rating("ann"), b"", event_id="one")
    await bus.consume(subjects.RATINGS, "reader", take_the_second_time)
    await done.wait()
    await crash_and_recover(nats_server, down=0.1)
    await published_at_last(bus, subjects.rating("bob"), 1, 0)
    await bus.close()

    assert registry.get_sample_value("gouji_bus_disconnects_total") == 1
    assert registry.get_sample_value("gouji_bus_facts_total", {"durable": "reader", "result": "failed"}) == 1
    assert (registry.get_sample_value("gouji_bus_facts_total", {"durable": "reader", "result": "taken"}) or 0) >= 1


async def test_a_full_stream_refuses_a_fact_rather_than_lose_an_older_one(nats_url: str, bus: NatsBus) -> None:
    operator = await nats.connect(nats_url)
    config = (await operator.jetstream().stream_info("RATINGS")).config
    await operator.jetstream().update_stream(config.evolve(max_msgs=1))
    await bus.publish_fact(subjects.rating("ann"), b"kept", event_id="one")

    with pytest.raises(BusUnavailable):
        await bus.publish_fact(subjects.rating("ann"), b"new", event_id="two")

    last = await bus.last_fact(subjects.rating("ann"))
    assert last is not None
    assert last.payload == b"kept"
    await operator.close()


async def test_publishers_that_race_for_a_subject_never_both_win(bus: NatsBus, other: NatsBus) -> None:
    outcomes = await asyncio.gather(
        *(
            publisher.publish_fact(subjects.rating("ann"), b"", event_id=f"{number}", expected_sequence=0)
            for number, publisher in enumerate([bus, other] * 10)
        ),
        return_exceptions=True,
    )

    assert sum(isinstance(outcome, int) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, OutOfSequence) for outcome in outcomes) == 19


async def test_a_dead_link_is_noticed_within_seconds(nats_server: NatsServer, nats_url: str) -> None:
    async with FaultyProxy(nats_server.port) as link:
        bus = await NatsBus.connect(NatsOptions((nats_url.replace(str(nats_server.port), str(link.port)),)))
        link.swallow()

        async with asyncio.timeout(6):
            while bus.is_connected:  # noqa: ASYNC110 - the driver has no event for it
                await asyncio.sleep(0.05)
        await bus.close()


async def test_a_server_that_is_not_there_is_not_waited_for_without_end() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        options = NatsOptions((f"nats://127.0.0.1:{nobody.getsockname()[1]}",), connect_within=1.0)

        async with asyncio.timeout(5):
            with pytest.raises(BusUnavailable):
                await NatsBus.connect(options)


async def test_a_wrong_password_is_reported_within_the_bound(nats_server: NatsServer) -> None:
    options = NatsOptions((f"nats://operator:wrong@127.0.0.1:{nats_server.port}",), connect_within=2.0)

    async with asyncio.timeout(8):
        with pytest.raises(BusUnavailable):
            await NatsBus.connect(options)


async def test_a_connection_that_the_server_ends_for_good_is_reported(bus: NatsBus) -> None:
    guard = asyncio.create_task(bus.guard())
    await asyncio.sleep(0)

    await bus._client.close()

    with pytest.raises(BusUnavailable):
        await guard


async def test_who_leaves_while_he_subscribes_neither_breaks_the_connection_nor_leaves_anything_behind(
    nats_url: str,
) -> None:
    registry, heard, enough = CollectorRegistry(), list[bytes](), asyncio.Event()
    bus = await NatsBus.connect(NatsOptions((nats_url,)), registry)

    async def hear(message: Message) -> None:
        heard.append(message.payload)
        enough.set()

    for steps in range(12):
        leaving = asyncio.create_task(bus.subscribe("gouji.live.table.public", hear))
        for _ in range(steps):
            await asyncio.sleep(0)
        leaving.cancel()
        with suppress(asyncio.CancelledError):
            await (await leaving).stop()
    await bus.subscribe("gouji.live.other.public", hear)
    await bus.publish("gouji.live.table.public", b"to who has left")
    await bus.publish("gouji.live.other.public", b"to who has stayed")
    async with asyncio.timeout(SOON):
        await enough.wait()
    await bus.close()

    assert heard == [b"to who has stayed"]
    assert registry.get_sample_value("gouji_bus_errors_total") == 0
    assert registry.get_sample_value("gouji_bus_disconnects_total") == 0


async def test_a_server_that_cannot_make_a_stream_just_now_is_asked_again(
    nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [ServerError(code=500, err_code=10049, description="error creating store for stream")]

    async def lay(jetstream: JetStreamContext, replicas: int) -> None:
        if refusals:
            raise refusals.pop()
        await lay_streams(jetstream, replicas)

    monkeypatch.setattr("engine.runtime.bus_nats.lay_streams", lay)
    bus = await NatsBus.connect(NatsOptions((nats_url,)))

    assert refusals == []
    assert await bus.publish_fact("gouji.fact.late", b"told", event_id="late", expected_sequence=0) == 1
    await bus.close()


async def test_a_door_that_closes_while_the_link_is_lost_is_asked_nothing_on_the_next_link(
    nats_server: NatsServer, nats_url: str, other: NatsBus
) -> None:
    registry = CollectorRegistry()

    async def answer(_: Message) -> bytes:
        return b"here"

    async with FaultyProxy(nats_server.port) as proxy:
        far = NatsOptions((nats_url.replace(str(nats_server.port), str(proxy.port)),))
        bus = await NatsBus.connect(far, registry)
        door, _ = await bus.serve("door", answer), await bus.serve("stays", answer)
        proxy.swallow()
        closing = asyncio.create_task(door.stop())
        await asyncio.sleep(0.1)
        proxy.heal()
        async with asyncio.timeout(SOON):
            await closing
            assert await answered_at_last(other, "stays") == b"here"

        with pytest.raises(NoResponders):
            await other.request("door", b"", timeout=1)
        assert registry.get_sample_value("gouji_bus_turned_away_total") == 0
        await bus.close()


def test_what_is_said_in_the_very_moment_in_which_the_link_ends_is_lost_and_breaks_nothing(nats_url: str) -> None:
    async def say() -> None:
        bus = await NatsBus.connect(NatsOptions((nats_url,)))
        driver = bus._client
        driver._transport._io_writer.transport.abort()  # type: ignore[union-attr]
        await asyncio.sleep(0)  # the link has ended, and the driver does not know yet
        with suppress(nats.errors.Error):
            await driver.flush(timeout=1)
        async with asyncio.timeout(SOON):
            await published_at_last(bus, subjects.rating("ann"), 1, 0)
        await bus.close()

    # As services run: the links of this loop raise when something is written after their end.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(say())


async def test_a_server_that_refuses_the_streams_is_left_without_a_complaint(
    nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def lay(jetstream: JetStreamContext, replicas: int) -> None:
        del jetstream, replicas
        raise BadRequestError(code=400, err_code=10052, description="stream configuration is invalid")

    monkeypatch.setattr("engine.runtime.bus_nats.lay_streams", lay)
    with pytest.raises(BusUnavailable):
        await NatsBus.connect(NatsOptions((nats_url,)))
    gc.collect()
    await asyncio.sleep(0.1)

    assert complaints == []
