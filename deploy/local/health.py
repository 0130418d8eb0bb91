"""Whether a service can serve, by the standard gRPC health protocol.

Law: asks once; whoever wants to wait asks again.
"""

from __future__ import annotations

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc


def state_of(address: str, *, timeout_s: float = 1.0) -> str:
    """`SERVING`, `NOT_SERVING`, or the status that the question itself ended with (`UNAVAILABLE`)."""
    with grpc.insecure_channel(address) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=timeout_s)
        except grpc.RpcError as failure:
            return failure.code().name if isinstance(failure, grpc.Call) else "UNKNOWN"
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
