from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
from gouji.engine.v1 import engine_pb2
from gouji.game.v1 import action_pb2
from gouji.table.v1 import table_pb2 as pb
from gouji.table.v1 import table_pb2_grpc as rpc

from engine.runtime import subjects
from engine.runtime.bus_memory import Broker, MemoryBus
from engine.runtime.grpc_server import ServerOptions
from engine.runtime.limits import Rate
from engine.runtime.uuid7 import uuid7
from services.bots.faults import reason_of
from services.table.servicer import SERVICE
from tests.support.proxy import FaultyProxy
from tests.support.scripted_engine import ScriptedEngine, accepted
from tests.support.table_server import PLENTY, TableServer, table_server
from tests.support.viewer import until


def action(kind: int = 1, **fields: Any) -> action_pb2.Action:
    return action_pb2.Action(kind=kind, **fields)  # type: ignore[arg-type]  # as a stranger's client might


LAY = action_pb2.Action(kind=action_pb2.ACTION_KIND_LAY, cards="99")


@dataclass
class House:
    broker: Broker
    engine: ScriptedEngine
    server: TableServer
    anna: rpc.TableServiceAsyncStub
    nobody: rpc.TableServiceAsyncStub

    @property
    def table_id(self) -> str:
        return str(self.engine.table_id)

    def cut(self) -> bool:
        labels = {"reason": "SLOW_READER"}
        return bool(self.server.registry.get_sample_value("gouji_table_streams_ended_total", labels))

    def act(self, **fields: Any) -> pb.ActRequest:
        asked = {"table_id": self.table_id, "command_id": str(uuid4()), "seen_version": 1, "action": LAY}
        return pb.ActRequest(**{**asked, **fields})


@pytest.fixture
async def house() -> AsyncIterator[House]:
    broker = Broker()
    engine = ScriptedEngine(MemoryBus(broker), uuid7())
    await engine.start()
    async with (
        table_server(MemoryBus(broker)) as server,
        server.channel("anna") as annas,
        server.channel(None) as nobodys,
    ):
        stub = rpc.TableServiceStub
        yield House(broker, engine, server, stub(annas), stub(nobodys))
    await engine.stop()


async def refused(call: Awaitable[object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), reason_of(caught.value)


async def test_an_action_reaches_the_engine_as_it_was_meant(house: House) -> None:
    house.engine.judge = lambda _: accepted(42)
    request = house.act(seen_version=7)

    response = await house.anna.Act(request)

    assert response.outcome.accepted.version == 42
    [command] = house.engine.commands
    assert (command.table_id, command.command_id) == (request.table_id, request.command_id)
    assert (command.caller.player_id, command.caller.role) == ("anna", "player")
    assert command.caller.request_id
    assert (command.act.seen_version, command.act.action) == (7, LAY)


async def test_a_refusal_is_an_answer(house: House) -> None:
    no = pb.Outcome(refused=pb.Refused(reason=action_pb2.REASON_NOT_YOUR_TURN, version=9))
    house.engine.judge = lambda _: engine_pb2.CommandReply(outcome=no)

    assert (await house.anna.Act(house.act())).outcome == no


@pytest.mark.parametrize(
    ("fault", "code", "reason"),
    [
        (engine_pb2.FAULT_NOT_FOUND, grpc.StatusCode.NOT_FOUND, "NOT_FOUND"),
        (engine_pb2.FAULT_NOT_YOUR_SEAT, grpc.StatusCode.PERMISSION_DENIED, "NOT_YOUR_SEAT"),
        (engine_pb2.FAULT_MALFORMED, grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST"),
        (engine_pb2.FAULT_UNAVAILABLE, grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE"),
        (engine_pb2.FAULT_BUSY, grpc.StatusCode.RESOURCE_EXHAUSTED, "BUSY"),
        (engine_pb2.FAULT_QUARANTINED, grpc.StatusCode.FAILED_PRECONDITION, "QUARANTINED"),
        (engine_pb2.FAULT_NOT_YET, grpc.StatusCode.FAILED_PRECONDITION, "NOT_YET"),
    ],
)
async def test_each_fault_has_its_status(
    house: House, fault: engine_pb2.Fault.ValueType, code: grpc.StatusCode, reason: str
) -> None:
    house.engine.judge = lambda _: engine_pb2.CommandReply(fault=fault)

    assert await refused(house.anna.Act(house.act())) == (code, reason)


async def test_a_shard_without_a_leader_is_asked_again_until_it_has_one(house: House) -> None:
    await house.engine.stop()
    acting = asyncio.ensure_future(house.anna.Act(house.act()))
    await asyncio.sleep(0.1)
    await house.engine.start()

    assert (await acting).outcome.HasField("accepted")
    assert len(house.engine.commands) == 1


async def test_a_shard_that_stays_without_a_leader_is_unavailable_in_time(house: House) -> None:
    await house.engine.stop()
    began = time.monotonic()

    assert await refused(house.anna.Act(house.act())) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
    assert time.monotonic() - began < 3


async def test_the_callers_own_deadline_is_kept_and_the_answer_typed(house: House) -> None:
    await house.engine.stop()

    code, reason = await refused(house.anna.Act(house.act(), timeout=0.3))

    assert (code, reason) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")


async def test_an_answer_that_does_not_come_is_asked_for_again_under_the_same_id(house: House) -> None:
    await house.engine.stop()
    seen = []

    async def slow_once(message: Any) -> bytes:
        seen.append(engine_pb2.CommandRequest.FromString(message.payload).command_id)
        if len(seen) == 1:
            await asyncio.sleep(0.7)
        return accepted(2).SerializeToString()

    serving = await house.engine.bus.serve(subjects.command(subjects.shard_of(house.engine.table_id)), slow_once)
    request = house.act()

    assert (await house.anna.Act(request)).outcome.accepted.version == 2
    assert seen == [request.command_id] * 2
    await serving.stop()


async def test_an_outcome_that_stays_unknown_is_said_to_be_unknown(house: House) -> None:
    await house.engine.stop()

    async def silent(_: Any) -> bytes:
        await asyncio.sleep(2)
        return b""

    serving = await house.engine.bus.serve(subjects.command(subjects.shard_of(house.engine.table_id)), silent)

    assert await refused(house.anna.Act(house.act())) == (grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED")
    await serving.stop()


async def test_an_engine_that_talks_nonsense_is_unavailable(house: House) -> None:
    shard = subjects.shard_of(house.engine.table_id)
    await house.engine.stop()

    async def babble(_: Any) -> bytes:
        return b"\xff\xff\xff"

    serving = await house.engine.bus.serve(subjects.command(shard), babble)

    assert (await refused(house.anna.Act(house.act())))[0] == grpc.StatusCode.UNAVAILABLE
    await serving.stop()


Spoil = Callable[[House], Awaitable[object]]

MALFORMED: dict[str, Spoil] = {
    "no table": lambda house: house.anna.Act(house.act(table_id="")),
    "a table that is no uuid": lambda house: house.anna.Act(house.act(table_id="gouji.*.>")),
    "a uuid in another form": lambda house: house.anna.Act(house.act(table_id=UUID(house.table_id).hex)),
    "no command id": lambda house: house.anna.Act(house.act(command_id="")),
    "no action": lambda house: house.anna.Act(house.act(action=None)),
    "an unknown kind": lambda house: house.anna.Act(house.act(action=action(kind=99))),
    "a negative kind": lambda house: house.anna.Act(house.act(action=action(kind=-1))),
    "no card letters": lambda house: house.anna.Act(house.act(action=action(kind=1, cards="1X\0"))),
    "too many cards": lambda house: house.anna.Act(house.act(action=action(kind=1, cards="9" * 161))),
    "no such ranks": lambda house: house.anna.Act(house.act(action=action(kind=17, ranks="z"))),
    "a seventh seat": lambda house: house.anna.Act(house.act(action=action(kind=20, seat=6))),
    "too many sets": lambda house: house.anna.Act(house.act(action=action(kind=23, sets=["3"] * 65))),
    "a seat out of bounds": lambda house: house.anna.TakeSeat(
        pb.TakeSeatRequest(table_id=house.table_id, command_id=str(uuid4()), seat=6)
    ),
    "a contribution that is not hex": lambda house: house.anna.SetReady(
        pb.SetReadyRequest(table_id=house.table_id, command_id=str(uuid4()), ready=True, contribution="xyz")
    ),
    "a contribution that is too long": lambda house: house.anna.SetReady(
        pb.SetReadyRequest(table_id=house.table_id, command_id=str(uuid4()), ready=True, contribution="0" * 65)
    ),
    "a variant in another writing": lambda house: house.anna.OpenTable(
        pb.OpenTableRequest(command_id=str(uuid7()), variant_key="够级", deals=1)
    ),
    "too many switches": lambda house: house.anna.OpenTable(
        pb.OpenTableRequest(command_id=str(uuid7()), variant_key="jinan", deals=1, switches=["buy=3"] * 65)
    ),
    "an opening that is not of today": lambda house: house.anna.OpenTable(
        pb.OpenTableRequest(command_id=str(uuid7(1_000_000_000_000)), variant_key="jinan", deals=1)
    ),
    "an opening by a random id": lambda house: house.anna.OpenTable(
        pb.OpenTableRequest(command_id=str(uuid4()), variant_key="jinan", deals=1)
    ),
    "a page that is too large": lambda house: house.anna.ListTables(pb.ListTablesRequest(page_size=51)),
    "a page token that is no table": lambda house: house.anna.ListTables(pb.ListTablesRequest(page_token="'; drop")),
    "a deal out of bounds": lambda house: house.anna.ExportDeal(
        pb.ExportDealRequest(table_id=house.table_id, deal=2**31)
    ),
    "a view of nothing": lambda house: house.anna.GetView(pb.GetViewRequest()),
    "moves at nothing": lambda house: house.anna.ListMoves(pb.ListMovesRequest()),
    "a rematch of nothing": lambda house: house.anna.Rematch(pb.RematchRequest()),
    "a watch of nothing": lambda house: house.anna.Watch(pb.WatchRequest()).read(),
    "a stream that moves first": lambda house: played(house.anna, pb.PlayRequest(move=pb.Move())),
    "a stream that says nothing": lambda house: played(house.anna, pb.PlayRequest()),
}


async def played(stub: rpc.TableServiceAsyncStub, *requests: pb.PlayRequest) -> object:
    call = stub.Play()
    for request in requests:
        await call.write(request)
    return await call.read()


@pytest.mark.parametrize("name", MALFORMED)
async def test_what_is_malformed_gets_a_typed_answer_and_never_reaches_the_engine(house: House, name: str) -> None:
    answered = await refused(MALFORMED[name](house))

    assert answered == (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST")
    assert house.engine.commands == []
    assert house.engine.histories == []


async def test_a_message_that_is_too_large_is_turned_away(house: House) -> None:
    request = house.act(action=action(kind=1, cards="9" * 300_000))

    assert (await refused(house.anna.Act(request)))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert house.engine.commands == []


@pytest.mark.parametrize(
    "call", ["Act", "GetView", "OpenTable", "ListTables", "TakeSeat", "ExportDeal", "ListMoves", "Rematch"]
)
async def test_who_shows_no_token_is_not_served(house: House, call: str) -> None:
    request = getattr(pb, f"{call}Request")()

    assert (await refused(getattr(house.nobody, call)(request)))[0] is grpc.StatusCode.UNAUTHENTICATED
    assert house.engine.commands == []


async def test_who_shows_no_token_gets_no_stream(house: House) -> None:
    watch = house.nobody.Watch(pb.WatchRequest(table_id=house.table_id))
    play = played(house.nobody, pb.PlayRequest(join=pb.Join(table_id=house.table_id)))

    assert (await refused(watch.read()))[0] is grpc.StatusCode.UNAUTHENTICATED
    assert (await refused(play))[0] is grpc.StatusCode.UNAUTHENTICATED
    assert house.engine.histories == []


async def test_an_opening_that_is_repeated_names_the_same_table_and_anothers_another(house: House) -> None:
    opening = pb.OpenTableRequest(command_id=str(uuid7()), variant_key="jinan", deals=4, switches=["buy=3,4"])
    tables = []

    async def lead(message: Any) -> bytes:
        tables.append(engine_pb2.CommandRequest.FromString(message.payload))
        return accepted(1).SerializeToString()

    serving = [await house.engine.bus.serve(subjects.command(shard), lead) for shard in range(256)]
    async with house.server.channel("boris") as boriss:
        first = await house.anna.OpenTable(opening)
        again = await house.anna.OpenTable(opening)
        other = await rpc.TableServiceStub(boriss).OpenTable(opening)
    for one in serving:
        await one.stop()

    assert first.table_id == again.table_id != other.table_id
    assert UUID(first.table_id).version == 7
    assert tables[0].open_table.switches == ["buy=3,4"]
    assert tables[0].open_table.deals == 4


async def test_a_list_goes_on_until_a_page_is_empty(house: House) -> None:
    page = await house.anna.ListTables(pb.ListTablesRequest(page_size=10))

    assert [table.table_id for table in page.tables] == [house.table_id]
    assert page.next_page_token == house.table_id


async def test_a_view_is_shown_in_the_callers_role(house: House) -> None:
    view = (await house.anna.GetView(pb.GetViewRequest(table_id=house.table_id))).view

    assert view.private.hand == "seat0"


async def test_moves_are_listed_for_the_callers_seat_and_for_nobody_else(house: House) -> None:
    request = pb.ListMovesRequest(table_id=house.table_id)

    async with house.server.channel("boris") as boriss, house.server.channel("zoe") as zoes:
        listed = await rpc.TableServiceStub(boriss).ListMoves(request)
        answered = await refused(rpc.TableServiceStub(zoes).ListMoves(request))

    assert listed == pb.ListMovesResponse(version=1, seat=1)
    assert answered == (grpc.StatusCode.PERMISSION_DENIED, "NOT_YOUR_SEAT")


async def test_a_rematch_names_its_table_or_says_why_there_is_none(house: House) -> None:
    request = pb.RematchRequest(table_id=house.table_id)

    rematch = await house.anna.Rematch(request)
    unknown = await refused(house.anna.Rematch(pb.RematchRequest(table_id=str(uuid7()))))
    async with house.server.channel("zoe") as zoes:
        strangers = await refused(rpc.TableServiceStub(zoes).Rematch(request))

    assert rematch == pb.RematchResponse(table_id="the rematch", version=1)
    assert unknown == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    assert strangers == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_YOUR_TABLE")


async def test_a_deal_is_handed_out(house: House) -> None:
    exported = await house.anna.ExportDeal(pb.ExportDealRequest(table_id=house.table_id, deal=3))

    assert exported.notation == "deal 3"


async def test_one_stream_plays_and_shows(house: House) -> None:
    call = house.anna.Play()
    await call.write(pb.PlayRequest(join=pb.Join(table_id=house.table_id)))
    snapshot = await call.read()
    move = pb.Move(command_id=str(uuid4()), seen_version=1, action=LAY)
    await call.write(pb.PlayRequest(move=move))
    answer = await nth(call, "answer")
    await house.engine.happen(1)
    update = await nth(call, "update", lambda response: bool(response.update.events))
    call.cancel()

    assert isinstance(snapshot, pb.PlayResponse)
    assert snapshot.snapshot.view.private.hand == "seat0"
    assert answer.answer.command_id == move.command_id
    assert answer.answer.outcome.accepted.version == 1
    assert [event.version for event in update.update.events] == [2]
    await until(lambda: house.server.watchers.tables == 0)


async def nth(call: Any, kind: str, fits: Callable[[pb.PlayResponse], bool] = lambda _: True) -> pb.PlayResponse:
    while True:
        response = await call.read()
        assert isinstance(response, pb.PlayResponse)
        if response.WhichOneof("response") == kind and fits(response):
            return response


async def test_a_move_that_is_not_judged_is_answered_and_the_stream_lives_on(house: House) -> None:
    call = house.anna.Play()
    await call.write(pb.PlayRequest(join=pb.Join(table_id=house.table_id)))
    await call.write(pb.PlayRequest(move=pb.Move(command_id="nonsense", action=LAY)))
    malformed = await nth(call, "answer")
    await call.write(pb.PlayRequest(move=pb.Move(command_id=str(uuid4()), ready=True, contribution="ab")))
    good = await nth(call, "answer")
    call.cancel()

    assert malformed.answer.fault == "MALFORMED_REQUEST"
    assert good.answer.outcome.HasField("accepted")
    assert house.engine.commands[0].set_ready.contribution == "ab"


async def test_a_second_join_ends_the_stream(house: House) -> None:
    call = house.anna.Play()
    join = pb.PlayRequest(join=pb.Join(table_id=house.table_id))
    await call.write(join)
    await call.write(join)

    assert await refused(nth(call, "answer")) == (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST")


async def test_who_says_goodbye_is_let_go_in_peace(house: House) -> None:
    call = house.anna.Play()
    await call.write(pb.PlayRequest(join=pb.Join(table_id=house.table_id)))
    await call.done_writing()

    responses = [response async for response in call]

    assert responses[0].HasField("snapshot")
    assert await call.code() is grpc.StatusCode.OK


async def test_actions_are_limited_per_player_and_the_others_play_on(house: House) -> None:
    bounds = replace(PLENTY, actions=Rate(per_second=0.001, burst=3))
    async with (
        table_server(MemoryBus(house.broker), bounds=bounds) as server,
        server.channel("anna") as annas,
        server.channel("boris") as boriss,
    ):
        anna, boris = rpc.TableServiceStub(annas), rpc.TableServiceStub(boriss)
        for _ in range(3):
            await anna.Act(house.act())
        limited = await refused(anna.Act(house.act()))
        unlisted = await refused(anna.ListMoves(pb.ListMovesRequest(table_id=house.table_id)))
        other = await boris.Act(house.act())

    assert limited == unlisted == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED")
    assert other.outcome.HasField("accepted")
    assert len(house.engine.commands) == 4


async def test_a_play_of_many_cards_is_let_through_or_turned_away_whole(house: House) -> None:
    bounds = replace(PLENTY, actions=Rate(per_second=0.001, burst=1))
    kings = "KSKSKSKSKHKHKHKHKDKDKDKDKCKCKCKC"
    asked = house.act()
    asked.action.CopyFrom(action_pb2.Action(kind=action_pb2.ACTION_KIND_LAY, cards=kings))
    async with table_server(MemoryBus(house.broker), bounds=bounds) as server, server.channel("anna") as annas:
        anna = rpc.TableServiceStub(annas)
        await anna.Act(asked)
        asked.command_id = str(uuid7())
        turned_away = await refused(anna.Act(asked))

    assert turned_away == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED")
    assert [command.act.action.cards for command in house.engine.commands] == [kings]


async def test_openings_are_limited_per_player(house: House) -> None:
    bounds = replace(PLENTY, openings=Rate(per_second=0.001, burst=1))
    async with table_server(MemoryBus(house.broker), bounds=bounds) as server, server.channel("anna") as annas:
        anna = rpc.TableServiceStub(annas)
        opening = pb.OpenTableRequest(variant_key="jinan", deals=1)
        codes = []
        for _ in range(2):
            opening.command_id = str(uuid7())
            codes.append((await refused(anna.OpenTable(opening)))[1])
        codes.append((await refused(anna.Rematch(pb.RematchRequest(table_id=house.table_id))))[1])

    assert codes == ["UNAVAILABLE", "RATE_LIMITED", "RATE_LIMITED"]


async def test_streams_are_limited_per_player(house: House) -> None:
    bounds = replace(PLENTY, streams=2)
    async with table_server(MemoryBus(house.broker), bounds=bounds) as server, server.channel("zoe") as zoes:
        zoe = rpc.TableServiceStub(zoes)
        watches = [zoe.Watch(pb.WatchRequest(table_id=house.table_id)) for _ in range(2)]
        for watch in watches:
            await watch.read()
        third = await refused(zoe.Watch(pb.WatchRequest(table_id=house.table_id)).read())
        for watch in watches:
            watch.cancel()
        await until(lambda: server.watchers.tables == 0)
        again = await zoe.Watch(pb.WatchRequest(table_id=house.table_id)).read()

    assert third == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_STREAMS")
    assert isinstance(again, pb.WatchResponse)


async def test_a_client_that_does_not_read_is_cut_and_the_service_lives_on(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.table.streams.STALL_S", 0.3)
    monkeypatch.setattr("services.table.feeds.MOST_FRAMES", 50)
    async with house.server.channel("zoe") as zoes:
        watch = rpc.TableServiceStub(zoes).Watch(pb.WatchRequest(table_id=house.table_id))
        await watch.read()
        for _ in range(3000):
            if house.cut():
                break
            await house.engine.happen(100)
        await until(house.cut)

    assert (await house.anna.Act(house.act())).outcome.HasField("accepted")


async def test_a_player_whose_link_dies_without_a_word_is_offline_within_the_keepalive(house: House) -> None:
    options = ServerOptions(keepalive=1000, keepalive_within=500)
    async with (
        table_server(MemoryBus(house.broker), options=options) as server,
        FaultyProxy(server.server.port) as proxy,
        server.channel("anna") as annas,
        server.channel("boris", port=proxy.port) as boriss,
    ):
        anna, boris = rpc.TableServiceStub(annas).Play(), rpc.TableServiceStub(boriss).Play()
        for call in (anna, boris):
            await call.write(pb.PlayRequest(join=pb.Join(table_id=house.table_id)))
            await call.read()
        await nth(anna, "update", lambda response: seats_connected(response) == [0, 1])
        proxy.swallow()
        async with asyncio.timeout(5):
            await nth(anna, "update", lambda response: seats_connected(response) == [0])


def seats_connected(response: pb.PlayResponse) -> list[int]:
    return [seat.seat for seat in response.update.view.public.seats if seat.connected]


METHODS = (
    "OpenTable",
    "ListTables",
    "TakeSeat",
    "LeaveSeat",
    "SetReady",
    "Act",
    "GetView",
    "ListMoves",
    "ExportDeal",
    "Rematch",
)


@pytest.mark.parametrize("method", METHODS)
async def test_bytes_of_any_kind_get_a_status_and_kill_nothing(house: House, method: str) -> None:
    chance = random.Random(method)
    valid = house.act(action=LAY).SerializeToString()
    async with house.server.channel("anna") as channel:
        call: Any = channel.unary_unary(f"/{SERVICE}/{method}")
        for size in range(60):
            noise = chance.randbytes(size) if size % 2 else spoilt(valid, chance)
            with contextlib.suppress(grpc.aio.AioRpcError):
                await call(noise)
        assert house.server.internal_errors() == 0

    assert (await house.anna.Act(house.act())).outcome.HasField("accepted")


async def test_streams_of_any_bytes_get_a_status_and_kill_nothing(house: House) -> None:
    chance = random.Random(5)
    join = pb.PlayRequest(join=pb.Join(table_id=house.table_id)).SerializeToString()
    move = pb.PlayRequest(move=pb.Move(command_id=str(uuid4()), action=LAY)).SerializeToString()
    async with house.server.channel("anna") as channel:
        for _ in range(60):
            call: Any = channel.stream_stream(f"/{SERVICE}/Play")()
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await call.write(join if chance.random() < 0.8 else spoilt(join, chance))
                for _ in range(3):
                    await call.write(spoilt(move, chance))
                await call.done_writing()
                async with asyncio.timeout(2):
                    await read_all(call)
        assert house.server.internal_errors() == 0
    await until(lambda: house.server.watchers.tables == 0)


async def read_all(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


def spoilt(message: bytes, chance: random.Random) -> bytes:
    """A message with a few of its bytes changed."""
    changed = bytearray(message)
    for _ in range(chance.randrange(1, 5)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)
