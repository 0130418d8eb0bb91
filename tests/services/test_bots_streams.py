"""A house player's stream over real gRPC, with a service that ends it."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from gouji.table.v1 import table_pb2 as pb

from services.bots.faults import Stop, TryAgain
from services.bots.sight import Choice
from services.bots.table_client import PLAY, TableClient

TABLE = "01939c2e-0000-7000-8000-000000000001"
COMMAND = "01939c2e-0000-7000-8000-000000000002"


@pytest.mark.parametrize(
    ("status", "fault"), [(grpc.StatusCode.UNAVAILABLE, TryAgain), (grpc.StatusCode.ABORTED, Stop)]
)
async def test_a_player_who_speaks_into_a_stream_that_has_ended_is_told_how_it_ended(
    status: grpc.StatusCode, fault: type[Exception]
) -> None:
    async def play(requests: AsyncIterator[pb.PlayRequest], context: grpc.aio.ServicerContext[object, object]) -> None:
        del requests
        await context.abort(status)

    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[pb.PlayRequest, object] = grpc.stream_stream_rpc_method_handler(
        play, pb.PlayRequest.FromString
    )
    service, method = PLAY.strip("/").split("/")
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {method: handler})])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stream = await TableClient(channel, lambda: "token").play(TABLE, 0)
            await stream._call.code()
            await asyncio.sleep(0)

            await stream.act(COMMAND, 7, Choice("PASS"))

            with pytest.raises(fault):
                await stream.receive()
            stream.close()
    finally:
        await server.stop(None)
