from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from uuid import UUID

import pytest
from gouji.engine.v1 import engine_pb2
from prometheus_client import CollectorRegistry

from engine.runtime import subjects
from engine.runtime.bus import BusUnavailable, Message
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.faults import Aborted, Busy, NotFound, NotYourSeat, Unavailable
from engine.runtime.uuid7 import uuid7
from services.table import feeds, presence, streams
from services.table.engine_client import EngineClient, Patience
from services.table.measures import Measures
from services.table.watchers import Watchers
from services.table.wire import Arrival, Notice, notice_bytes, notice_of
from tests.support.scripted_engine import ScriptedEngine
from tests.support.viewer import until, viewing

HASTY = Patience(longest=0.4, attempt=0.2, least=0.05, first_pause=0.005, longest_pause=0.02)


class Link(MemoryBus):
    """A bus that cannot be reached now and then."""

    is_down = False

    async def publish(self, subject: str, payload: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        if self.is_down:
            raise BusUnavailable
        await super().publish(subject, payload, headers=headers)


@dataclass
class House:
    broker: Broker
    engine: ScriptedEngine
    replicas: list[Watchers]

    @property
    def watchers(self) -> Watchers:
        return self.replicas[0]

    @property
    def table_id(self) -> UUID:
        return self.engine.table_id


@pytest.fixture
async def house() -> AsyncIterator[House]:
    broker = Broker()
    engine = ScriptedEngine(MemoryBus(broker), uuid7())
    await engine.start()
    replicas = []
    for _ in range(3):
        bus = MemoryBus(broker)
        replicas.append(Watchers(bus, EngineClient(bus, HASTY), Measures(CollectorRegistry())))
    caring = [asyncio.create_task(replica.run()) for replica in replicas]
    yield House(broker, engine, replicas)
    for task in caring:
        task.cancel()
    await engine.stop()


def marks(audience: str, first: int, last: int) -> list[str]:
    return [f"{audience}:{version}" for version in range(first, last + 1)]


async def test_a_newcomer_gets_a_snapshot_first_and_then_every_event(house: House) -> None:
    await house.engine.happen(4)

    async with viewing(house.watchers, house.table_id, "anna") as anna:
        await house.engine.happen(2)
        await house.engine.happen(1)
        await until(lambda: len(anna.marks) == 3)

    assert anna.kinds[0] == "snapshot"
    assert anna.views[0].version == 5
    assert anna.marks == marks("seat0", 6, 8)
    assert anna.views[-1].version == 8


@pytest.mark.parametrize("after", range(1, 31))
@pytest.mark.parametrize("page", [1, 7, 1000])
async def test_who_comes_back_at_any_version_gets_exactly_what_was_missed(house: House, after: int, page: int) -> None:
    house.engine.page = page
    await house.engine.happen(29)

    async with viewing(house.watchers, house.table_id, "zoe", after) as zoe:
        await house.engine.happen(1)
        await until(lambda: "public:31" in zoe.marks)

    assert zoe.marks == marks("public", after + 1, 31)
    assert "snapshot" not in zoe.kinds


async def test_who_knows_more_than_the_log_gets_a_snapshot_and_then_every_event(house: House) -> None:
    async with viewing(house.watchers, house.table_id, "zoe", after=99) as zoe:
        await house.engine.happen(2)
        await until(lambda: len(zoe.marks) == 2)

    assert zoe.kinds[0] == "snapshot"
    assert zoe.views[0].version == 1
    assert zoe.marks == marks("public", 2, 3)


@pytest.mark.parametrize("after", [0, 3, 5])
@pytest.mark.parametrize("steps", range(12))
async def test_what_happens_at_any_moment_of_a_join_is_seen_once_and_in_order(
    house: House, after: int, steps: int
) -> None:
    await house.engine.happen(4)

    async def happen_after(steps: int) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
        await house.engine.happen(1)
        await house.engine.happen(2)

    happening = asyncio.create_task(happen_after(steps))
    async with viewing(house.watchers, house.table_id, "anna", after, is_play=True) as anna:
        await happening
        await until(lambda: anna.views[-1].version == 8, seconds=2)
        seen_with_the_first_view = anna.views[0].version if after == 0 else after
        await until(lambda: anna.marks == marks("seat0", seen_with_the_first_view + 1, 8), seconds=2)

    assert anna.kinds[0] == ("update" if after else "snapshot")


async def test_who_watches_a_log_that_loses_its_end_is_told_and_begins_anew(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.table.rooms.QUIET_S", 0.3)
    await house.engine.happen(9)
    async with (
        viewing(house.watchers, house.table_id, "anna", is_play=True) as anna,
        viewing(house.watchers, house.table_id, "zoe") as zoe,
    ):
        house.engine.version = 4
        await house.engine.happen(1)
        await until(lambda: anna.fault is not None and zoe.fault is not None)
        async with viewing(house.watchers, house.table_id, "anna", after=10, is_play=True) as again:
            await house.engine.happen(1)
            await until(lambda: again.marks == ["seat0:6"])

    assert {viewer.fault.reason for viewer in (anna, zoe) if viewer.fault} == {"WENT_BACK"}
    assert anna.marks == zoe.marks == []
    assert (again.kinds[0], again.views[0].version) == ("snapshot", 5)


async def test_a_lost_update_is_filled_from_the_history_in_order(house: House) -> None:
    async with viewing(house.watchers, house.table_id, "anna") as anna:
        await house.engine.happen(1)
        await house.engine.happen(2, lost_by=["seat0"])
        await house.engine.happen(1)
        await until(lambda: len(anna.marks) == 4)

    assert anna.marks == marks("seat0", 2, 5)


async def test_the_last_update_is_missed_because_another_audience_got_it(house: House) -> None:
    async with (
        viewing(house.watchers, house.table_id, "anna") as anna,
        viewing(house.watchers, house.table_id, "zoe") as zoe,
    ):
        await house.engine.happen(1, lost_by=["seat0"])
        await until(lambda: len(anna.marks) == 1, seconds=2)

    assert anna.marks == ["seat0:2"]
    assert zoe.marks == ["public:2"]


async def test_the_last_update_is_missed_because_an_answer_spoke_of_it(house: House) -> None:
    async with viewing(house.watchers, house.table_id, "anna") as anna:
        await house.engine.happen(1, lost_by=["seat0"])
        house.watchers.told(house.table_id, 2)
        await until(lambda: len(anna.marks) == 1, seconds=2)


async def test_the_last_update_is_missed_in_the_silence_after_it(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.table.rooms.QUIET_S", 0.3)
    async with viewing(house.watchers, house.table_id, "anna") as anna:
        await house.engine.happen(1, lost_by=["seat0"])
        await until(lambda: len(anna.marks) == 1)


async def test_a_hole_is_filled_when_the_engine_is_back(house: House) -> None:
    async with viewing(house.watchers, house.table_id, "anna") as anna:
        await house.engine.stop()
        await house.engine.happen(1, lost_by=["seat0"])
        await house.engine.happen(1)
        await asyncio.sleep(0.6)
        assert anna.marks == []

        await house.engine.start()
        await until(lambda: len(anna.marks) == 2)

    assert anna.marks == marks("seat0", 2, 3)


async def test_heartbeats_carry_the_version(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.05)
    await house.engine.happen(6)

    async with viewing(house.watchers, house.table_id, "zoe") as zoe:
        await until(lambda: zoe.kinds[-1] == "heartbeat")

    assert zoe.responses[-1].heartbeat.version == 7


async def test_a_reader_that_stalls_is_cut_with_his_version(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STALL_S", 0.2)
    async with viewing(house.watchers, house.table_id, "zoe") as zoe:
        zoe.reads.clear()
        await house.engine.happen(1)
        await until(lambda: zoe.fault is not None)

    assert isinstance(zoe.fault, Busy)
    assert zoe.fault.reason == "SLOW_READER"


async def test_a_reader_that_falls_behind_is_cut_and_the_others_are_not(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "MOST_FRAMES", 4)
    async with (
        viewing(house.watchers, house.table_id, "zoe") as zoe,
        viewing(house.watchers, house.table_id, "yuri") as yuri,
    ):
        zoe.reads.clear()
        for _ in range(12):
            await house.engine.happen(1)
            await asyncio.sleep(0.01)
        zoe.reads.set()
        await until(lambda: zoe.fault is not None and len(yuri.marks) == 12)

    assert zoe.fault is not None
    assert zoe.fault.reason == "SLOW_READER"
    resume_from = int(zoe.fault.metadata["version"])
    assert resume_from == 1 + len(zoe.marks)
    assert yuri.fault is None
    async with viewing(house.watchers, house.table_id, "zoe", resume_from) as again:
        await until(lambda: zoe.marks + again.marks == marks("public", 2, 13))


async def test_a_feed_keeps_no_frame_that_everybody_has(house: House) -> None:
    async with viewing(house.watchers, house.table_id, "zoe") as zoe:
        for _ in range(50):
            await house.engine.happen(1)
            await asyncio.sleep(0)
        await until(lambda: len(zoe.marks) == 50)
        await house.engine.happen(1)
        await until(lambda: len(zoe.marks) == 51)
        assert zoe.stream is not None
        assert len(zoe.stream.feed._frames) <= 2


async def test_the_newest_play_stream_of_a_player_wins(house: House) -> None:
    async with (
        viewing(house.watchers, house.table_id, "anna", is_play=True) as older,
        viewing(house.watchers, house.table_id, "anna", is_play=True) as newer,
    ):
        await until(lambda: older.fault is not None)
        await house.engine.happen(1)
        await until(lambda: newer.marks == ["seat0:2"])

    assert isinstance(older.fault, Aborted)
    assert older.fault.reason == "SUPERSEDED"
    assert older.marks == []


async def test_the_newest_play_stream_wins_on_another_replica_too(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.table.rooms.SAME_MOMENT_S", 0.0)
    async with (
        viewing(house.replicas[0], house.table_id, "anna", is_play=True) as older,
        viewing(house.replicas[1], house.table_id, "anna", is_play=True) as newer,
    ):
        await until(lambda: older.fault is not None)
        await asyncio.sleep(0.5)
        assert newer.fault is None

    assert older.fault is not None
    assert older.fault.reason == "SUPERSEDED"


async def test_of_play_streams_that_begin_one_after_the_other_on_three_replicas_the_last_stays(house: House) -> None:
    async with (
        viewing(house.replicas[0], house.table_id, "anna", is_play=True) as one,
        viewing(house.replicas[1], house.table_id, "anna", is_play=True) as two,
        viewing(house.replicas[2], house.table_id, "anna", is_play=True) as three,
    ):
        await until(lambda: one.fault is not None and two.fault is not None)
        await asyncio.sleep(0.3)
        assert three.fault is None


async def test_of_play_streams_that_begin_at_once_one_stays(house: House) -> None:
    async with contextlib.AsyncExitStack() as stack:
        views = [viewing(replica, house.table_id, "anna", is_play=True) for replica in house.replicas]
        viewers = await asyncio.gather(*(stack.enter_async_context(view) for view in views))
        await asyncio.sleep(0.5)
        assert [viewer.fault is None for viewer in viewers].count(True) == 1


async def test_a_peer_that_missed_the_newer_stream_is_told_of_it(house: House) -> None:
    heard: list[Notice] = []

    async def hear(message: Message) -> None:
        heard.append(notice_of(message.payload))

    bus = MemoryBus(house.broker)
    await bus.subscribe(subjects.peers(house.table_id), hear)
    async with viewing(house.watchers, house.table_id, "anna", is_play=True) as anna:
        await until(lambda: any(notice.arrival for notice in heard))
        heard.clear()
        older = Notice("another", frozenset({"anna"}), Arrival("anna", "an older stream", at_ms=1))
        await bus.publish(subjects.peers(house.table_id), notice_bytes(older))
        assert anna.stream is not None
        await until(lambda: any(notice.arrival == anna.stream.arrival for notice in heard if anna.stream))
        assert anna.fault is None
    await bus.close()


async def test_only_the_seated_may_play(house: House) -> None:
    async with viewing(house.watchers, house.table_id, "zoe", is_play=True) as zoe:
        assert isinstance(zoe.fault, NotYourSeat)


async def test_a_seated_player_watches_as_his_seat_and_never_as_the_public(house: House) -> None:
    async with viewing(house.watchers, house.table_id, "chen") as chen:
        await house.engine.happen(1)
        await until(lambda: chen.marks == ["seat2:2"])


async def test_a_spectator_who_sits_down_loses_the_public_stream_before_anything_else_is_shown(house: House) -> None:
    house.engine.players[3] = ""
    async with viewing(house.watchers, house.table_id, "zoe") as zoe:
        house.engine.players[3] = "zoe"
        await house.engine.happen(1)
        await until(lambda: zoe.fault is not None)

    assert zoe.fault is not None
    assert zoe.fault.reason == "ROLE_CHANGED"
    assert zoe.marks == []


async def test_who_loses_the_seat_sees_nothing_of_it_from_that_event_on(house: House) -> None:
    async with viewing(house.watchers, house.table_id, "dora", is_play=True) as dora:
        house.engine.players[3] = "zoe"
        await house.engine.happen(1)
        await until(lambda: dora.fault is not None)

        async with viewing(house.watchers, house.table_id, "zoe", is_play=True) as zoe:
            await house.engine.happen(1)
            await until(lambda: zoe.marks == ["seat3:3"])

    assert dora.marks == []
    assert dora.fault is not None
    assert dora.fault.reason == "ROLE_CHANGED"


async def test_who_comes_back_is_where_the_log_has_him_whatever_he_was_before(house: House) -> None:
    await house.engine.happen(4)
    async with viewing(house.watchers, house.table_id, "dora", 3, is_play=True) as before:
        await until(lambda: before.marks == marks("seat3", 4, 5))
    other = UUID(int=house.table_id.int ^ 1 << 64)
    house.engine.players[3], house.engine.players[5] = "", "dora"
    await house.engine.happen(1)

    async with (
        viewing(house.replicas[1], house.table_id, "dora", 5, is_play=True) as dora,
        viewing(house.replicas[2], house.table_id, "fatma", 5) as fatma,
        viewing(house.replicas[2], house.table_id, "fatma", 5, is_play=True) as unseated,
        viewing(house.replicas[1], other, "dora", 5, is_play=True) as elsewhere,
    ):
        await until(lambda: dora.marks == marks("seat5", 6, 6) and fatma.marks == marks("public", 6, 6))
        assert isinstance(unseated.fault, NotYourSeat)
        assert isinstance(elsewhere.fault, NotFound)
        assert all(view.private.seat == 5 for view in dora.views)
        assert not any(view.HasField("private") for view in fatma.views)


@pytest.mark.parametrize("page", [1, 1000])
async def test_who_lost_the_seat_while_updates_were_lost_sees_nothing_either(house: House, page: int) -> None:
    house.engine.page = page
    async with viewing(house.watchers, house.table_id, "dora", is_play=True) as dora:
        house.engine.players[3] = "zoe"
        await house.engine.happen(3, lost_by=["seat3"])
        house.watchers.told(house.table_id, 4)
        await until(lambda: dora.fault is not None)

    assert dora.marks == []


async def test_an_unknown_table_is_not_found_and_leaves_no_room(house: House) -> None:
    async with viewing(house.watchers, uuid7(), "anna") as anna:
        assert anna.fault is not None
    assert house.watchers.tables == 0


async def test_a_table_that_is_gone_ends_its_streams(house: House) -> None:
    async with viewing(house.watchers, house.table_id, "anna") as anna:
        house.engine.history_fault = engine_pb2.FAULT_NOT_FOUND
        await house.engine.happen(1, lost_by=["seat0"])
        await house.engine.happen(1)
        await until(lambda: isinstance(anna.fault, NotFound))


async def test_garbage_on_the_live_subject_changes_nothing(house: House) -> None:
    async with viewing(house.watchers, house.table_id, "anna") as anna:
        bus = MemoryBus(house.broker)
        torn = engine_pb2.LiveUpdate()
        torn.update.events.append(house.engine.event(2, "seat0"))
        torn.update.view.version = 7
        await bus.publish(f"gouji.live.{house.table_id}.seat0", torn.SerializeToString())
        for garbage in (b"", b"\xff\xff", b"\x0a\x02\x0a\x00"):
            await bus.publish(f"gouji.live.{house.table_id}.seat0", garbage)
            await bus.publish(f"gouji.table.{house.table_id}.peers", b"\xff\xff")
        await house.engine.happen(1)
        await until(lambda: anna.marks == ["seat0:2"])
    assert {view.version for view in anna.views} == {1, 2}


async def test_six_players_on_three_replicas_see_the_same_and_each_other(house: House) -> None:
    table = house.table_id
    async with (
        viewing(house.replicas[0], table, "anna", is_play=True) as anna,
        viewing(house.replicas[0], table, "boris", is_play=True) as boris,
        viewing(house.replicas[1], table, "chen", is_play=True) as chen,
        viewing(house.replicas[1], table, "dora", is_play=True) as dora,
        viewing(house.replicas[2], table, "emil", is_play=True) as emil,
        viewing(house.replicas[2], table, "fatma", is_play=True) as fatma,
    ):
        everybody = (anna, boris, chen, dora, emil, fatma)
        for _ in range(20):
            await house.engine.happen(2)
        await until(lambda: all(len(viewer.marks) == 40 for viewer in everybody))
        await until(lambda: all(viewer.connected() == [0, 1, 2, 3, 4, 5] for viewer in everybody))

    for seat, viewer in enumerate(everybody):
        assert viewer.marks == marks(f"seat{seat}", 2, 41)


async def test_a_player_whose_stream_ends_is_offline_for_the_others(house: House) -> None:
    async with viewing(house.replicas[0], house.table_id, "anna", is_play=True) as anna:
        async with viewing(house.replicas[1], house.table_id, "boris", is_play=True):
            await until(lambda: anna.connected() == [0, 1])
        await until(lambda: anna.connected() == [0], seconds=1)


async def test_who_comes_later_sees_at_once_who_is_there(house: House) -> None:
    async with (
        viewing(house.replicas[0], house.table_id, "anna", is_play=True),
        viewing(house.replicas[1], house.table_id, "zoe") as zoe,
    ):
        await until(lambda: zoe.connected() == [0], seconds=2)


async def test_players_of_a_silent_replica_are_offline_within_the_bound(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "SILENCE_S", 0.5)
    monkeypatch.setattr(presence, "BEAT_S", 0.15)
    async with (
        viewing(house.replicas[0], house.table_id, "anna", is_play=True) as anna,
        viewing(house.replicas[1], house.table_id, "boris", is_play=True),
    ):
        await until(lambda: anna.connected() == [0, 1])
        monkeypatch.setattr(house.replicas[1]._rooms[house.table_id].presence, "publish", _silent)
        await until(lambda: anna.connected() == [0], seconds=1.5)


async def _silent(_: bytes) -> None:
    """Drop what would be told."""


async def test_a_replica_that_is_cut_off_from_the_bus_sends_its_streams_away_and_the_others_do_not(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "SILENCE_S", 0.8)
    monkeypatch.setattr(presence, "BEAT_S", 0.15)
    link = Link(house.broker)
    lonely = Watchers(link, EngineClient(link, HASTY), Measures(CollectorRegistry()))
    caring = asyncio.create_task(lonely.run())
    await house.engine.happen(1)

    async with (
        viewing(lonely, house.table_id, "anna", is_play=True) as anna,
        viewing(lonely, house.table_id, "nobody") as spectator,
        viewing(house.watchers, house.table_id, "boris", is_play=True) as boris,
    ):
        await asyncio.sleep(1.5)
        assert not any(viewer.fault for viewer in (anna, spectator, boris))
        link.is_down = True
        await until(lambda: anna.fault is not None and spectator.fault is not None)

    assert isinstance(anna.fault, Unavailable)
    assert anna.fault.reason == "CUT_OFF"
    assert boris.fault is None
    caring.cancel()


async def test_a_stopping_replica_sends_its_streams_away_and_takes_no_more(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.table.watchers.DRAIN_S", 0.1)
    async with viewing(house.watchers, house.table_id, "anna", is_play=True) as anna:
        await house.watchers.drain()
        await until(lambda: anna.fault is not None)
        async with viewing(house.watchers, house.table_id, "boris") as boris:
            assert isinstance(boris.fault, Unavailable)

    assert anna.fault is not None
    assert anna.fault.reason == "DRAINING"


async def test_an_audience_without_streams_is_not_listened_to(house: House) -> None:
    async with viewing(house.watchers, house.table_id, "zoe"):
        async with viewing(house.watchers, house.table_id, "anna"):
            assert subjects.live(house.table_id, "seat0") in house.broker.listeners
        await until(lambda: subjects.live(house.table_id, "seat0") not in house.broker.listeners)
        assert subjects.live(house.table_id, "public") in house.broker.listeners


async def test_a_replica_without_streams_holds_nothing(house: House) -> None:
    before = len(asyncio.all_tasks())
    for _ in range(20):
        async with viewing(house.watchers, house.table_id, "anna", is_play=True):
            await house.engine.happen(1)
    await until(lambda: len(asyncio.all_tasks()) <= before)

    assert house.watchers.tables == 0
    assert not house.broker.listeners
