import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from copy import deepcopy
from uuid import uuid4

import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import action_pb2, view_pb2

from engine import match
from engine.match import Match
from engine.match.events import DeadlineExtended
from engine.runtime import subjects
from engine.runtime.bus import RequestTimedOut
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.service import codec
from engine.store.memory import MemoryEventStore
from engine.store.port import Append, shard_of
from tests.support.engine_bench import AUDIENCES, PLAYERS, Callers, Replica, accepted, eventually, forms, start
from tests.support.faulty_store import FaultyStore, Trouble, fine, hanging, lost_after, lost_before, slow, unreachable

PASS = action_pb2.Action(kind=action_pb2.ACTION_KIND_PASS)


class Bench:
    """One engine on a memory bus and a store that can break."""

    def __init__(self, replica: Replica, store: FaultyStore, broker: Broker) -> None:
        self.replica = replica
        self.store = store
        self.broker = broker

    def callers(self) -> Callers:
        """Callers of a fresh table."""
        return Callers(MemoryBus(self.broker))

    async def versions(self, callers: Callers) -> int:
        return (await self.store.inner.head(callers.table_id)).version


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    broker, store = Broker(), FaultyStore(MemoryEventStore())
    replica = await start(store, MemoryBus(broker))
    yield Bench(replica, store, broker)
    store.is_down = False
    await replica.stop()


@pytest.fixture
async def dealt(bench: Bench) -> Callers:
    """A table whose first deal is running."""
    callers = bench.callers()
    await callers.open_with_six()
    await callers.all_ready()
    return callers


async def test_six_players_play_a_match_to_its_end(bench: Bench) -> None:
    callers = bench.callers()
    await callers.open_with_six()
    await callers.all_ready()

    played = await callers.play()

    head = await bench.store.inner.head(callers.table_id)
    assert played > 50
    assert head.closed
    assert head.deadline is None
    assert (await callers.view("anna")).public.phase == view_pb2.TABLE_PHASE_FINISHED


async def test_the_same_command_twice_has_one_effect_and_one_answer(bench: Bench, dealt: Callers) -> None:
    command_id = uuid4()
    player, action = await _turn(dealt)

    first = accepted(await dealt.act(player, action, command_id))
    await dealt.play(3)
    version = await bench.versions(dealt)
    again = accepted(await dealt.act(player, action, command_id))

    assert again == first
    assert await bench.versions(dealt) == version


async def test_a_repeated_command_gets_its_first_answer_from_a_new_leader_too(bench: Bench, dealt: Callers) -> None:
    command_id = uuid4()
    player, action = await _turn(dealt)
    first = accepted(await dealt.act(player, action, command_id))
    await dealt.play(3)
    await bench.replica.stop()
    bench.replica = await start(bench.store, MemoryBus(bench.broker), "b")
    version = await bench.versions(dealt)

    again = accepted(await dealt.act(player, action, command_id))

    assert again == first
    assert await bench.versions(dealt) == version


async def test_a_refused_command_appends_nothing_and_tells_why_and_the_version(bench: Bench, dealt: Callers) -> None:
    version = await bench.versions(dealt)
    turn, _ = await _turn(dealt)
    other = next(player for player in PLAYERS if player != turn)

    reply = await dealt.act(other, PASS)

    assert reply.outcome.refused.reason != action_pb2.REASON_UNSPECIFIED
    assert reply.outcome.refused.version == version
    assert await bench.versions(dealt) == version


async def test_an_unknown_table_is_not_found_and_not_created(bench: Bench) -> None:
    callers = bench.callers()

    reply = await callers.act("anna", PASS)

    assert reply.fault == engine.FAULT_NOT_FOUND
    assert len(bench.replica.engine.tables) == 0
    assert await bench.store.inner.list_streams(10) == []


async def test_garbage_is_malformed_and_the_engine_lives(dealt: Callers) -> None:
    subject = subjects.command(shard_of(dealt.table_id))
    for garbage in (b"\xff\xff\xff", b"", engine.CommandRequest(table_id="no uuid").SerializeToString()):
        reply = engine.CommandReply.FromString(await dealt.ask_once(subject, garbage))
        assert reply.fault == engine.FAULT_MALFORMED

    accepted(await dealt.act(*await _turn(dealt)))


async def test_nothing_is_acknowledged_or_shown_before_it_is_stored(bench: Bench, dealt: Callers) -> None:
    await dealt.watch()
    player, action = await _turn(dealt)
    bench.store.troubles = [hanging]

    with suppress(RequestTimedOut):
        request = engine.CommandRequest(
            table_id=str(dealt.table_id),
            command_id=str(uuid4()),
            caller=engine.Caller(player_id=player),
            act=engine.Act(action=action),
        )
        subject = subjects.command(shard_of(dealt.table_id))
        reply = await dealt.ask_once(subject, request.SerializeToString(), timeout=0.3)
        pytest.fail(f"answered {reply!r} before anything was stored")

    assert not dealt.shown


async def test_a_store_out_of_reach_costs_the_command_alone_and_the_same_command_succeeds_later(
    bench: Bench, dealt: Callers
) -> None:
    await dealt.watch()
    version = await bench.versions(dealt)
    player, action = await _turn(dealt)
    bench.store.troubles = [unreachable] * 3

    answer = accepted(await dealt.act(player, action))

    assert answer > version
    assert min(forms(dealt.shown["public"])) == version + 1


@pytest.mark.parametrize("troubles", [[lost_before], [lost_after], [lost_before, lost_before, lost_after]])
async def test_a_connection_lost_in_the_middle_stores_the_command_once(
    bench: Bench, dealt: Callers, troubles: list[Trouble]
) -> None:
    await dealt.watch()
    version = await bench.versions(dealt)
    player, action = await _turn(dealt)
    bench.store.appends.clear()
    bench.store.troubles = list(troubles)

    answer = accepted(await dealt.act(player, action))
    await asyncio.sleep(0.05)

    same = {(append.command_id, append.events) for append in bench.store.appends}
    assert len(same) == 1
    assert answer == await bench.versions(dealt) == max(forms(dealt.shown["public"]))
    assert answer == version + len(bench.store.appends[0].events)


async def test_a_table_that_another_writer_moved_is_taken_up_again(bench: Bench, dealt: Callers) -> None:
    player, action = await _turn(dealt)
    head = await bench.store.inner.head(dealt.table_id)
    extended = codec.encode(DeadlineExtended(head.deadline.at_ms if head.deadline else 0))
    await bench.store.inner.append(
        Append(dealt.table_id, head.version, head.epoch, uuid4(), "other", 0, (extended,), deadline=head.deadline)
    )

    answer = accepted(await dealt.act(player, action))

    assert answer == await bench.versions(dealt)


async def test_a_log_that_lost_what_was_acknowledged_is_what_the_table_is_from_then_on(
    bench: Bench, dealt: Callers
) -> None:
    copy, command_id = deepcopy(bench.store.inner), uuid4()
    player, action = await _turn(dealt)
    accepted(await dealt.act(player, action, command_id))
    await dealt.play(3)
    bench.store.inner = copy

    other, its_action = await _turn(dealt)
    await dealt.act(other, its_action)
    again = accepted(await dealt.act(player, action, command_id))

    stored = await bench.store.inner.find_command(dealt.table_id, command_id)
    assert stored is not None
    assert again == stored.version
    assert await dealt.play(5) == 5


async def test_a_flood_is_told_to_back_off_and_the_table_lives_on(bench: Bench, dealt: Callers) -> None:
    subject = subjects.command(shard_of(dealt.table_id))
    bench.store.troubles = [slow]
    player, action = await _turn(dealt)

    def request(who: str, what: action_pb2.Action) -> bytes:
        return engine.CommandRequest(
            table_id=str(dealt.table_id),
            command_id=str(uuid4()),
            caller=engine.Caller(player_id=who),
            act=engine.Act(action=what),
        ).SerializeToString()

    answers = await asyncio.gather(
        dealt.ask_once(subject, request(player, action)),
        *(dealt.ask_once(subject, request("boris", PASS)) for _ in range(200)),
    )
    faults = [engine.CommandReply.FromString(answer).fault for answer in answers]

    assert faults.count(engine.FAULT_BUSY) > 100
    assert faults[0] == 0
    assert await dealt.play(5) == 5


async def test_all_asked_in_a_window_may_answer_at_once_and_each_is_accepted(dealt: Callers) -> None:
    public = (await dealt.view("nobody")).public
    asked = [public.seats[seat].player_id for seat in public.window.waiting]
    stay = action_pb2.Action(kind=action_pb2.ACTION_KIND_STAY)

    replies = await asyncio.gather(*(dealt.act(player, stay) for player in asked))

    assert len(asked) > 1
    assert all(reply.outcome.HasField("accepted") for reply in replies)


async def test_six_players_sit_down_at_once_and_a_seventh_does_not(bench: Bench) -> None:
    callers = bench.callers()
    accepted(await callers.send("anna", open_table=engine.OpenTable(variant_key="qingdao-charter", deals=1)))

    sits = [callers.send(player, take_seat=engine.TakeSeat(seat=seat)) for seat, player in enumerate(PLAYERS)]
    late = callers.send("gong", take_seat=engine.TakeSeat(seat=3))
    replies = await asyncio.gather(*sits, late)

    assert sum(reply.outcome.HasField("accepted") for reply in replies) == 6
    seats = (await callers.view("nobody")).public.seats
    assert all(seat.player_id for seat in seats)


async def test_a_fault_of_the_rules_sets_one_table_aside_and_the_others_play_on(
    bench: Bench, dealt: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = bench.callers()
    await other.open_with_six()
    await other.all_ready()
    version = await bench.versions(dealt)
    real, broken = match.decide, str(dealt.table_id)
    poisoned = (await bench.replica.engine.tables.look(dealt.table_id)).standing.match

    def decide(table: Match, command: match.Command) -> match.Decision:
        if table is poisoned:
            raise KeyError(broken)
        return real(table, command)

    monkeypatch.setattr(match, "decide", decide)
    reply = await dealt.act(*await _turn(dealt))

    assert reply.fault == engine.FAULT_QUARANTINED
    assert (await dealt.act("anna", PASS)).fault == engine.FAULT_QUARANTINED
    assert [table for table, _ in bench.replica.engine.tables.quarantined()] == [dealt.table_id]
    assert bench.replica.value("gouji_engine_quarantined_tables") == 1
    assert await bench.versions(dealt) == version
    assert await other.play(10) == 10


async def test_a_table_that_is_set_aside_tells_no_card(
    bench: Bench, dealt: Callers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hand = (await dealt.view("anna")).private.hand

    def decide(*_: object) -> match.Decision:
        raise KeyError(hand)

    monkeypatch.setattr(match, "decide", decide)
    reply = await dealt.act("anna", PASS)

    [(_, fault)] = bench.replica.engine.tables.quarantined()
    told = capsys.readouterr().out
    assert "table quarantined" in told
    assert "KeyError in decide" in fault
    assert not any(hand in text for text in (told, fault, str(reply)))


async def test_a_table_set_aside_plays_on_with_the_next_leader(
    bench: Bench, dealt: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(match, "decide", _breaking)
        assert (await dealt.act("anna", PASS)).fault == engine.FAULT_QUARANTINED
    await bench.replica.stop()
    bench.replica = await start(bench.store, MemoryBus(bench.broker), "b")

    assert await dealt.play(5) == 5


async def test_an_operator_can_close_a_table_that_was_set_aside(
    bench: Bench, dealt: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(match, "decide", _breaking)
        assert (await dealt.act("anna", PASS)).fault == engine.FAULT_QUARANTINED

    accepted(await dealt.send("admin", house=engine.House(kind=engine.House.KIND_CLOSE, reason="broken")))

    assert (await bench.store.inner.head(dealt.table_id)).closed
    assert bench.replica.engine.tables.quarantined() == []


async def test_what_is_stored_is_accepted_even_if_it_cannot_be_shown(
    bench: Bench, dealt: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    player, action = await _turn(dealt)
    monkeypatch.setattr(match, "redacted", _breaking)

    answer = accepted(await dealt.act(player, action))

    assert answer == await bench.versions(dealt)
    assert len(bench.replica.engine.tables.quarantined()) == 1


async def test_history_at_every_version_equals_what_was_shown_live(bench: Bench) -> None:
    callers = bench.callers()
    await callers.watch()
    await callers.open_with_six(deals=2)
    for _ in range(2):
        await callers.all_ready()
        await callers.play()
    last = await bench.versions(callers)
    await asyncio.sleep(0.05)

    for audience in AUDIENCES:
        player = PLAYERS[int(audience[-1])] if audience != "public" else "nobody"
        shown = forms(callers.shown[audience])
        assert sorted(shown) == list(range(1, last + 1))
        for after in (0, 1, last // 3, last // 2, last - 70, last - 5, last - 1, last):
            history = await callers.history(player, after, limit=50)
            versions = [event.version for event in history.events]
            assert history.audience == audience
            assert versions == list(range(after + 1, min(after + 50, last) + 1))
            assert all(event.SerializeToString(deterministic=True) == shown[event.version] for event in history.events)
            assert history.complete == (min(after + 50, last) == last)
            assert history.view.version == last


async def test_every_append_is_one_message_to_each_of_the_seven_audiences(bench: Bench) -> None:
    callers = bench.callers()
    await callers.watch()
    await callers.open_with_six()
    await callers.all_ready()
    await callers.play(40)
    await asyncio.sleep(0.05)

    spans = {
        audience: [(update.events[0].version, update.events[-1].version) for update in updates]
        for audience, updates in callers.shown.items()
    }
    assert set(spans) == set(AUDIENCES)
    assert all(spans[audience] == spans["public"] for audience in AUDIENCES)


async def test_nobody_is_shown_a_hand_a_seed_or_a_deck_that_is_not_his_while_the_deal_runs(bench: Bench) -> None:
    callers = bench.callers()
    await callers.watch()
    await callers.open_with_six()
    await callers.all_ready()
    await callers.play(30)
    hands = [(await callers.view(player)).private.hand for player in PLAYERS]
    await asyncio.sleep(0.05)

    for audience in AUDIENCES:
        shown = b"".join(update.SerializeToString() for update in callers.shown[audience])
        others = [hand for seat, hand in enumerate(hands) if audience != f"seat{seat}"]
        assert not any(hand.encode() in shown for hand in others)
        for update in callers.shown[audience]:
            for event in update.events:
                started, dealt_cards = event.event.deal_started, event.event.cards_dealt
                assert not any(started.HasField(field) for field in ("seed", "deck", "contributions"))
                visible = [seat for seat, hand in enumerate(dealt_cards.hands) if hand.HasField("cards")]
                assert visible in ([], [int(audience[-1])] if audience != "public" else [])


async def test_a_player_without_a_seat_is_the_public_whatever_he_asks_for(dealt: Callers) -> None:
    history = await dealt.history("gong")

    assert history.audience == "public"
    assert not history.view.HasField("private")


async def test_only_an_operator_looks_over_the_shoulder_of_a_seat(dealt: Callers) -> None:
    subject = subjects.history(shard_of(dealt.table_id))

    def look(role: str) -> bytes:
        return engine.HistoryRequest(
            table_id=str(dealt.table_id), player_id="olga", role=role, as_seat=2
        ).SerializeToString()

    seen = engine.HistoryReply.FromString(await dealt.ask_once(subject, look("admin")))
    denied = engine.HistoryReply.FromString(await dealt.ask_once(subject, look("player")))

    assert seen.history.audience == "seat2"
    assert seen.history.view.private.seat == 2
    assert denied.fault == engine.FAULT_NOT_YOUR_SEAT


async def test_open_tables_are_listed_newest_first_in_pages(bench: Bench) -> None:
    tables = [bench.callers() for _ in range(5)]
    for callers in tables:
        await callers.open_with_six()
    newest_first = sorted((str(callers.table_id) for callers in tables), reverse=True)

    async def page(limit: int, before: str = "") -> list[str]:
        request = engine.ListRequest(limit=limit, before=before).SerializeToString()
        reply = engine.ListReply.FromString(await tables[0].ask_once(subjects.LIST, request))
        return [table.table_id for table in reply.tables]

    first = await page(3)
    assert first == newest_first[:3]
    assert await page(3, first[-1]) == newest_first[3:]


async def test_a_finished_deal_is_exported_and_a_running_one_is_not(dealt: Callers) -> None:
    subject = subjects.export(shard_of(dealt.table_id))
    request = engine.ExportRequest(table_id=str(dealt.table_id), deal=1).SerializeToString()
    running = engine.ExportReply.FromString(await dealt.ask_once(subject, request))
    await dealt.play()

    over = engine.ExportReply.FromString(await dealt.ask_once(subject, request, timeout=10))

    assert running.fault == engine.FAULT_NOT_YET
    assert over.notation.startswith("gouji 1")


async def test_hundreds_of_short_tables_leave_no_table_no_task_and_no_deadline_behind(bench: Bench) -> None:
    await asyncio.sleep(0.1)
    tasks = len(asyncio.all_tasks())
    for _ in range(200):
        callers = bench.callers()
        await callers.open_with_six()
        accepted(await callers.send("admin", house=engine.House(kind=engine.House.KIND_CLOSE, reason="test")))
        await callers.bus.close()
    await asyncio.sleep(0.1)

    assert len(asyncio.all_tasks()) == tasks
    assert len(bench.replica.engine.tables) == 0
    assert len(bench.replica.engine.deadlines) == 0


async def test_the_house_deals_after_a_break_of_the_store_without_being_asked(bench: Bench) -> None:
    callers = bench.callers()
    await callers.open_with_six()
    for player in PLAYERS[:-1]:
        accepted(await callers.send(player, set_ready=engine.SetReady(ready=True)))
    bench.store.troubles = [fine, unreachable]

    accepted(await callers.send(PLAYERS[-1], set_ready=engine.SetReady(ready=True)))

    await eventually(lambda: callers.is_in(view_pb2.TABLE_PHASE_PLAYING))


async def _turn(callers: Callers) -> tuple[str, action_pb2.Action]:
    turn = await callers._whose_turn()
    assert turn is not None
    return turn


def _breaking(*_: object) -> match.Decision:
    raise KeyError("broken")
