import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import grpc
import pytest
from gouji.table.v1 import table_pb2 as pb

from deploy.local.environment import token_key
from deploy.local.health import state_of
from deploy.local.stack import Stack
from engine.runtime.clock import SystemClock
from engine.runtime.identity import Minter, Role
from engine.runtime.uuid7 import uuid7
from services.bots.player import play_match
from services.bots.sight import Sight
from services.bots.table_client import TableClient
from tests.support.viewer import until

pytestmark = pytest.mark.timeout(300)

PLAYERS = ("anna", "boris", "chen", "dora", "emil", "fatma")
HOUR_MS = 3_600_000


@pytest.fixture(params=["apart", "together"])
def stack(folder: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    stack = Stack(folder, together=request.param == "together")
    stack.start()
    yield stack
    stack.stop()


class Evening:
    """Six house players at one table of an installation."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.frames: dict[str, list[bytes]] = {player: [] for player in PLAYERS}
        self._minter = Minter(token_key(stack.folder), "gouji", SystemClock())

    @asynccontextmanager
    async def client(self, player: str) -> AsyncIterator[TableClient]:
        async with grpc.aio.insecure_channel(self.stack.addresses["table"]) as channel:
            token = partial(self._minter.mint, player, Role.PLAYER, HOUR_MS)
            yield TableClient(channel, token, self.frames.setdefault(player, []).append)

    async def plays(self, table_id: str, seat: int) -> Sight:
        async with self.client(PLAYERS[seat]) as client:
            return await play_match(client, table_id, seat, seed=seat)

    def has_received(self, frames: int) -> bool:
        return sum(map(len, self.frames.values())) >= frames


def restart(stack: Stack, *, hard: bool) -> None:
    """End the table service, and the engine when both are one process, and start it again."""
    child = stack.service("together" if "together" in stack.installation.processes else "table")
    if hard:
        child.kill()
    else:
        child.stop(grace_s=20)
        assert child.exit_code() == 0
    child.start()
    while state_of(stack.addresses["table"]) != "SERVING":
        time.sleep(0.05)


@pytest.mark.parametrize("hard", [True, False])
async def test_a_match_goes_on_when_the_table_service_ends_in_the_middle_of_a_deal(stack: Stack, *, hard: bool) -> None:
    evening = Evening(stack)
    async with evening.client("opener") as opener:
        table_id = await opener.open_table(str(uuid7()), "qingdao-charter", 1)

    playing = [asyncio.create_task(evening.plays(table_id, seat)) for seat in range(6)]
    async with asyncio.timeout(240):
        for frames in (200, 400):
            await until(partial(evening.has_received, frames), seconds=60)
            assert not any(task.done() for task in playing)
            await asyncio.to_thread(restart, stack, hard=hard)
        ends = await asyncio.gather(*playing)

    assert {end.phase for end in ends} == {"FINISHED"}
    for player in PLAYERS:
        versions = list(reached(evening.frames[player]))
        assert versions == list(range(versions[0], versions[-1] + 1))


def reached(frames: list[bytes]) -> Iterator[int]:
    """The versions that a player was brought to, event by event, from the first snapshot on."""
    for response in map(pb.PlayResponse.FromString, frames):
        yield from (event.version for event in response.update.events)
