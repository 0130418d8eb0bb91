"""Every command gets an answer that says what became of it and where the table stands, and changes nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import action_pb2, view_pb2

from engine.runtime import subjects
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.service import codec
from engine.service.standing import fold
from engine.store.memory import MemoryEventStore
from engine.store.port import shard_of
from tests.support.engine_bench import Callers, Replica, accepted, start
from tests.support.faulty_store import FaultyStore, unreachable
from tests.support.viewer import until

Kind = action_pb2.ActionKind
STAY = action_pb2.Action(kind=Kind.ACTION_KIND_STAY)
PASS = action_pb2.Action(kind=Kind.ACTION_KIND_PASS)


class Bench:
    """An engine on a store that can break, and a table there."""

    def __init__(self, replica: Replica, store: FaultyStore, callers: Callers) -> None:
        self.replica = replica
        self.store = store
        self.callers = callers

    async def version(self) -> int:
        return (await self.store.inner.head(self.callers.table_id)).version

    async def dealt(self) -> Callers:
        """The table, its first deal running."""
        await self.callers.open_with_six()
        await self.callers.all_ready()
        return self.callers


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    broker, store = Broker(), FaultyStore(MemoryEventStore())
    replica = await start(store, MemoryBus(broker))
    callers = Callers(MemoryBus(broker))
    await until(lambda: subjects.moves(shard_of(callers.table_id)) in broker.servers)
    yield Bench(replica, store, callers)
    await replica.stop()


OPEN = engine.OpenTable(variant_key="qingdao-charter", deals=1)


@pytest.mark.parametrize(
    ("who", "command"),
    [
        ("anna", {"open_table": OPEN}),
        ("gong", {"take_seat": engine.TakeSeat(seat=3)}),
        ("anna", {"take_seat": engine.TakeSeat(seat=3)}),
        ("gong", {"leave_seat": engine.LeaveSeat()}),
        ("anna", {"leave_seat": engine.LeaveSeat()}),
        ("gong", {"set_ready": engine.SetReady(ready=True)}),
        ("anna", {"set_ready": engine.SetReady(ready=True)}),
        ("gong", {"act": engine.Act(action=PASS)}),
        ("anna", {"act": engine.Act(action=PASS)}),
        ("anna", {"act": engine.Act(action=action_pb2.Action(kind=Kind.ACTION_KIND_LAY, cards="3S"))}),
    ],
    ids=[
        "open again",
        "a seat that is taken",
        "another seat",
        "leave without a seat",
        "leave a running deal",
        "ready without a seat",
        "ready in a running deal",
        "act without a seat",
        "act out of turn",
        "lay in a window",
    ],
)
async def test_whatever_is_refused_is_answered_with_a_reason_and_the_version_and_changes_nothing(
    bench: Bench, who: str, command: Mapping[str, Any]
) -> None:
    callers = await bench.dealt()
    await callers.watch()
    version = await bench.version()
    bench.store.appends.clear()

    reply = await callers.send(who, **command)

    assert reply.outcome.refused.reason != action_pb2.REASON_UNSPECIFIED
    assert reply.outcome.refused.version == version == await bench.version()
    assert bench.store.appends == []
    assert not callers.shown


async def test_six_who_answer_a_window_at_once_from_an_old_version_are_each_accepted_or_told_why_not(
    bench: Bench,
) -> None:
    callers = await bench.dealt()
    public = (await callers.view("nobody")).public
    asked = [public.seats[seat].player_id for seat in public.window.waiting]
    assert len(asked) == 6

    async def answers(player: str, action: action_pb2.Action) -> engine.CommandReply:
        return await callers.send(player, act=engine.Act(seen_version=1, action=action))

    replies = await asyncio.gather(
        *(answers(player, STAY) for player in asked[:4]),
        *(answers(player, PASS) for player in asked[4:]),
        *(answers(player, STAY) for player in asked[:2]),
    )

    outcomes = [reply.outcome for reply in replies]
    assert [one.WhichOneof("outcome") for one in outcomes] == ["accepted"] * 4 + ["refused"] * 4
    assert all(one.refused.reason and one.refused.version for one in outcomes[4:])
    assert len({one.accepted.version for one in outcomes[:4]}) == 4


def _asked_of_nothing(table_id: str) -> list[tuple[Any, bytes, Any]]:
    """Every request about a table, and the kind of its reply."""
    caller = engine.Caller(player_id="anna", role="player")

    def command(**what: Any) -> bytes:
        asked = engine.CommandRequest(table_id=table_id, command_id=str(uuid4()), caller=caller, **what)
        return asked.SerializeToString()

    commands = [
        command(take_seat=engine.TakeSeat(seat=0)),
        command(leave_seat=engine.LeaveSeat()),
        command(set_ready=engine.SetReady(ready=True)),
        command(act=engine.Act(action=PASS)),
    ]
    return [
        *((subjects.command, asked, engine.CommandReply) for asked in commands),
        (
            subjects.history,
            engine.HistoryRequest(table_id=table_id, player_id="anna", limit=10).SerializeToString(),
            engine.HistoryReply,
        ),
        (subjects.export, engine.ExportRequest(table_id=table_id, deal=1).SerializeToString(), engine.ExportReply),
        (
            subjects.moves,
            engine.MovesRequest(table_id=table_id, player_id="anna").SerializeToString(),
            engine.MovesReply,
        ),
        (
            lambda _: subjects.REMATCH,
            engine.RematchRequest(table_id=table_id, caller=caller).SerializeToString(),
            engine.RematchReply,
        ),
    ]


async def test_whatever_is_asked_of_a_table_that_is_none_is_not_found_and_makes_none(bench: Bench) -> None:
    callers = bench.callers
    requests = _asked_of_nothing(str(callers.table_id))

    replies = [
        kind.FromString(await callers.ask_once(subject(shard_of(callers.table_id)), asked))
        for subject, asked, kind in requests
    ]

    assert [reply.fault for reply in replies] == [engine.FAULT_NOT_FOUND] * len(requests)
    assert await bench.store.inner.list_streams(10) == []
    assert len(bench.replica.engine.tables) == len(bench.replica.engine.deadlines) == 0


async def test_what_could_not_be_stored_is_not_what_the_table_is(bench: Bench) -> None:
    callers = await bench.dealt()
    before = await callers.view("anna")
    bench.store.troubles = [unreachable] * 1000
    subject = subjects.command(shard_of(callers.table_id))
    request = engine.CommandRequest(
        table_id=str(callers.table_id),
        command_id=str(uuid4()),
        caller=engine.Caller(player_id="anna"),
        act=engine.Act(action=STAY),
    )

    lost = engine.CommandReply.FromString(await callers.ask_once(subject, request.SerializeToString()))
    after = await callers.view("anna")
    bench.store.troubles = []

    assert lost.fault == engine.FAULT_UNAVAILABLE
    assert after == before
    held = (await bench.replica.engine.tables.look(callers.table_id)).standing
    stored = await fold(bench.store.inner, callers.table_id)
    assert codec.state_hash(held.match) == codec.state_hash(stored.match)
    accepted(await callers.act("anna", STAY))


async def test_one_who_asks_for_two_seats_at_once_gets_one(bench: Bench) -> None:
    callers = bench.callers
    accepted(await callers.send("gong", open_table=OPEN))

    replies = await asyncio.gather(*(callers.send("anna", take_seat=engine.TakeSeat(seat=seat)) for seat in range(6)))

    assert [reply.outcome.HasField("accepted") for reply in replies].count(True) == 1
    refusals = {reply.outcome.refused.reason for reply in replies if reply.outcome.HasField("refused")}
    assert refusals == {action_pb2.REASON_ALREADY_SEATED}
    view = await callers.view("nobody")
    assert [seat.player_id for seat in view.public.seats].count("anna") == 1
    assert view.public.phase == view_pb2.TABLE_PHASE_GATHERING
