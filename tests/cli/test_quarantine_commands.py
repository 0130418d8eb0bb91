import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from gouji.engine.v1 import engine_pb2 as engine
from gouji.game.v1 import action_pb2
from typer.testing import CliRunner, Result

from deploy.local.nats_server import NatsServer
from deploy.local.process import LOOPBACK, free_port
from engine import match
from engine.runtime.bus_nats import NatsBus, NatsOptions
from engine.store.postgres import PostgresEventStore
from services.cli.main import app
from services.cli.quarantine_client import Quarantine
from tests.support.engine_bench import Callers, eventually, start

PASS = action_pb2.Action(kind=action_pb2.ACTION_KIND_PASS)


def breaking(*_: object) -> match.Match:
    raise ZeroDivisionError


@pytest.fixture
async def broken(
    nats_url: str, postgres_store: PostgresEventStore, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callers]:
    """A table that a running engine has set aside."""
    bus = await NatsBus.connect(NatsOptions((nats_url,)))
    replica = await start(postgres_store, bus)
    operator = Quarantine(bus, "olga")

    async def every_shard_answers() -> bool:
        return (await operator.everywhere())[1] == []

    await eventually(every_shard_answers)
    callers = Callers(bus)
    await callers.open_with_six()
    await callers.all_ready()
    with monkeypatch.context() as patch:
        patch.setattr(match, "decide", breaking)
        assert (await callers.act("anna", PASS)).fault == engine.FAULT_QUARANTINED
    yield callers
    await replica.stop()
    await bus.close()


@pytest.fixture
def operator(nats_server: NatsServer, store_dsn: str) -> dict[str, str]:
    """An operator's environment."""
    return {
        "GOUJI_NATS_SERVERS": nats_server.address,
        "GOUJI_NATS_USER": "operator",
        "GOUJI_NATS_PASSWORD": nats_server.password("operator"),
        "GOUJI_POSTGRES_DSN": store_dsn,
    }


async def run(env: dict[str, str], *words: str) -> Result:
    """Run `gouji tables quarantine …` beside the engine."""
    return await asyncio.to_thread(lambda: CliRunner().invoke(app, ["tables", "quarantine", *words], env=env))


async def test_a_table_is_found_looked_at_and_released(operator: dict[str, str], broken: Callers) -> None:
    table = str(broken.table_id)

    listed = await run(operator, "list")
    looked = await run(operator, "inspect", table)
    released = await run(operator, "release", table)
    left = await run(operator, "list")

    assert (listed.exit_code, listed.output.split()[:2]) == (1, [table, "ZeroDivisionError"])
    assert looked.exit_code == 0
    assert "ZeroDivisionError in breaking" in looked.output
    assert "chain      whole" in looked.output
    assert (released.exit_code, released.output.splitlines()[-1]) == (0, "released")
    assert (left.exit_code, left.output) == (0, "")
    assert await broken.play(3) == 3


async def test_programs_read_json(operator: dict[str, str], broken: Callers) -> None:
    listed = json.loads((await run(operator, "list", "--json")).output)
    looked = json.loads((await run(operator, "inspect", str(broken.table_id), "--json", "--events", "2")).output)

    assert listed["table_id"] == looked["table_id"] == str(broken.table_id)
    assert looked["set_aside"] == listed["fault"]
    assert looked["folded"] == looked["version"]
    assert [set(line) for line in looked["last"]] == [{"version", "type", "actor", "at_ms", "command_id"}] * 2


async def test_without_a_bus_the_log_is_still_looked_at(operator: dict[str, str], broken: Callers) -> None:
    nowhere = operator | {"GOUJI_NATS_SERVERS": f"{LOOPBACK}:{free_port()}"}

    looked = await run(nowhere, "inspect", str(broken.table_id))
    listed = await run(nowhere, "list")

    assert (looked.exit_code, listed.exit_code) == (0, 1)
    assert "the bus cannot be reached" in looked.output
    assert "the bus cannot be reached" in listed.output


async def test_a_table_that_is_not_set_aside_is_not_released(operator: dict[str, str], broken: Callers) -> None:
    assert (await run(operator, "release", str(broken.table_id))).exit_code == 0

    again = await run(operator, "release", str(broken.table_id))

    assert again.exit_code == 1
    assert "not_found" in again.output
