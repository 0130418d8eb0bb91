"""Tables that a fault has set aside: listed, looked at and released by operators."""

from collections.abc import AsyncIterator

import pytest
import structlog.testing
from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import action_pb2

from engine import match
from engine.match import Match
from engine.runtime import subjects
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.uuid7 import uuid7
from engine.service import standing
from engine.service.inspection import inspect
from engine.store.memory import MemoryEventStore
from engine.store.port import Append, NewEvent
from services.cli.quarantine_client import NotReleased, Quarantine
from tests.support.engine_bench import Callers, Replica, accepted, start

PASS = action_pb2.Action(kind=action_pb2.ACTION_KIND_PASS)


class Bench:
    """Two engines that share the shards, and an operator."""

    def __init__(self, replicas: list[Replica], store: MemoryEventStore, broker: Broker) -> None:
        self.replicas = replicas
        self.store = store
        self.operator = Quarantine(MemoryBus(broker), "olga")
        self.bus = MemoryBus(broker)

    async def dealt(self) -> Callers:
        callers = Callers(self.bus)
        await callers.open_with_six()
        await callers.all_ready()
        return callers

    async def set_aside(self, monkeypatch: pytest.MonkeyPatch) -> Callers:
        """A table over which the rules broke once."""
        callers = await self.dealt()
        with monkeypatch.context() as patch:
            patch.setattr(match, "decide", breaking)
            assert (await callers.act("anna", PASS)).fault == engine.FAULT_QUARANTINED
        return callers


def breaking(*_: object) -> Match:
    raise ZeroDivisionError("hearts")


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    broker, store = Broker(), MemoryEventStore()
    replicas = [await start(store, MemoryBus(broker), owner) for owner in "ab"]
    yield Bench(replicas, store, broker)
    for replica in replicas:
        await replica.stop()


async def test_tables_set_aside_anywhere_are_listed_with_their_fault(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [await bench.set_aside(monkeypatch) for _ in range(3)]
    await bench.dealt()

    tables, silent = await bench.operator.everywhere()

    assert [table.table_id for table in tables] == sorted(str(callers.table_id) for callers in broken)
    assert all(table.fault.startswith("ZeroDivisionError in breaking:") for table in tables)
    assert not any("hearts" in table.fault for table in tables)
    assert silent == []
    assert await bench.operator.of(broken[0].table_id) in tables


async def test_a_released_table_is_folded_again_and_plays_on(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = await bench.set_aside(monkeypatch)

    with structlog.testing.capture_logs() as told:
        await bench.operator.release(broken.table_id)

    assert await bench.operator.everywhere() == ([], [])
    assert await broken.play(5) == 5
    assert [(line["table"], line["by"]) for line in told if line["event"] == "table released"] == [
        (str(broken.table_id), "olga")
    ]


async def test_a_table_that_breaks_again_stays_set_aside_with_its_new_fault(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = await bench.set_aside(monkeypatch)
    monkeypatch.setattr(standing, "advanced", breaking)

    with pytest.raises(NotReleased, match="quarantined"):
        await bench.operator.release(broken.table_id)

    [table], _ = await bench.operator.everywhere()
    assert table.table_id == str(broken.table_id)


async def test_only_what_is_set_aside_can_be_released(bench: Bench) -> None:
    callers = await bench.dealt()

    for table_id in (callers.table_id, uuid7()):
        with pytest.raises(NotReleased, match="not_found"):
            await bench.operator.release(table_id)

    assert await callers.play(3) == 3


@pytest.mark.parametrize("role", ["player", "service", ""])
async def test_only_admins_list_and_release(bench: Bench, monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    broken = await bench.set_aside(monkeypatch)
    shard = subjects.shard_of(broken.table_id)
    caller = engine.Caller(player_id="mallory", role=role)

    for release in ("", str(broken.table_id)):
        request = engine.QuarantineRequest(caller=caller, shard=shard, release=release)
        answer = await bench.bus.request(subjects.quarantine(shard), request.SerializeToString(), timeout=1)
        assert engine.QuarantineReply.FromString(answer) == engine.QuarantineReply(fault=engine.FAULT_NOT_YOUR_SEAT)

    assert await bench.operator.of(broken.table_id) is not None


@pytest.mark.parametrize("payload", [b"\xff\xff", b"no protobuf"])
async def test_what_cannot_be_read_is_answered_so(bench: Bench, payload: bytes) -> None:
    answer = await bench.bus.request(subjects.quarantine(3), payload, timeout=1)

    assert engine.QuarantineReply.FromString(answer).fault == engine.FAULT_MALFORMED


async def test_an_id_that_is_none_is_answered_so(bench: Bench) -> None:
    request = engine.QuarantineRequest(caller=engine.Caller(role="admin"), release="no uuid")

    answer = await bench.bus.request(subjects.quarantine(3), request.SerializeToString(), timeout=1)

    assert engine.QuarantineReply.FromString(answer).fault == engine.FAULT_MALFORMED


async def test_shards_that_nobody_leads_are_told(bench: Bench) -> None:
    for replica in bench.replicas:
        await replica.stop()

    tables, silent = await bench.operator.everywhere()

    assert (tables, silent) == ([], list(range(256)))
    assert await bench.operator.of(uuid7()) is None
    with pytest.raises(NotReleased, match="nobody answers"):
        await bench.operator.release(uuid7())


async def test_a_table_that_left_the_database_is_not_found(bench: Bench) -> None:
    callers = await bench.dealt()
    accepted(await callers.send("admin", house=engine.House(kind=engine.House.KIND_CLOSE, reason="old")))
    bench.store._streams[callers.table_id].events.clear()

    reply = await callers.act("anna", PASS)

    assert reply.fault == engine.FAULT_NOT_FOUND
    assert await bench.operator.everywhere() == ([], [])


# Looked at


async def test_an_inspection_tells_where_a_table_stands_and_never_a_card(bench: Bench) -> None:
    callers = await bench.dealt()
    await callers.play(20)

    looked = await inspect(bench.store, callers.table_id, last=5)

    head = await bench.store.head(callers.table_id)
    events = await bench.store.read(callers.table_id)
    assert (looked.version, looked.folded, looked.closed) == (head.version, head.version, False)
    assert (looked.fault, looked.broken_at, looked.phase) == ("", 0, "playing")
    assert head.deadline is not None
    assert looked.deadline_at_ms == head.deadline.at_ms
    assert [(line.version, line.type, line.actor) for line in looked.last] == [
        (event.version, event.type, event.actor) for event in events[-5:]
    ]
    assert (await inspect(bench.store, callers.table_id, last=0)).last == ()


async def test_an_inspection_tells_over_which_event_the_fold_breaks(bench: Bench) -> None:
    callers = await bench.dealt()
    head = await bench.store.head(callers.table_id)
    stranger = NewEvent("of_another_release", 7, b"cards")
    await bench.store.append(
        Append(callers.table_id, head.version, head.epoch, uuid7(), "house", 1, (stranger, stranger))
    )

    looked = await inspect(bench.store, callers.table_id)

    assert (looked.version, looked.folded) == (head.version + 2, head.version)
    assert looked.fault.startswith("UnknownEvent in ")
    assert looked.last[-1].type == "of_another_release"
