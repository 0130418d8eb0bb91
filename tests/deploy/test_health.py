from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from grpc_health.v1.health import HealthServicer
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from deploy.local.health import UNREACHABLE, state_of
from deploy.local.process import LOOPBACK, free_port

Serve = Callable[[int], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    server = grpc.server(ThreadPoolExecutor(1))
    servicer = HealthServicer()
    add_HealthServicer_to_server(servicer, server)

    def start(status: int) -> str:
        port = server.add_insecure_port(f"{LOOPBACK}:0")
        servicer.set("", status)
        server.start()
        return f"{LOOPBACK}:{port}"

    yield start
    server.stop(None).wait()


@pytest.mark.parametrize("state", ["SERVING", "NOT_SERVING"])
def test_a_service_tells_its_health(serve: Serve, state: str) -> None:
    assert state_of(serve(HealthCheckResponse.ServingStatus.Value(state)), timeout_s=5) == state


def test_nobody_there_is_unreachable() -> None:
    assert state_of(f"{LOOPBACK}:{free_port()}") == UNREACHABLE
