import asyncio

import nats

from deploy.local.nats_server import NatsServer


async def test_a_killed_server_comes_back_with_every_acknowledged_fact(nats_server: NatsServer, nats_url: str) -> None:
    connection = await nats.connect(nats_url)
    await connection.jetstream().add_stream(name="KEPT", subjects=["kept.>"])
    await connection.jetstream().publish("kept.one", b"1")
    await connection.close()

    nats_server.kill()
    nats_server.start()

    connection = await nats.connect(nats_url)
    assert (await connection.jetstream().stream_info("KEPT")).state.messages == 1
    await connection.close()


async def test_ranking_cannot_listen_to_live_tables(nats_server: NatsServer) -> None:
    refusal: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def note(error: Exception) -> None:
        refusal.set_result(str(error).lower())

    connection = await nats.connect(nats_server.url("ranking"), error_cb=note)
    await connection.subscribe("gouji.live.>")

    assert "permissions violation" in await asyncio.wait_for(refusal, 5)
    await connection.close()


async def test_a_stranger_is_turned_away(nats_server: NatsServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", nats_server.port)
    writer.write(b'CONNECT {"user":"operator","pass":"guess"}\r\nPING\r\n')

    answers = await reader.read()

    assert b"-ERR 'Authorization Violation'" in answers
    writer.close()
    await writer.wait_closed()
