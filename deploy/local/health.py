"""Whether a service can serve, by the standard gRPC health protocol.

Law: asks once; whoever wants to wait asks again.
"""

from __future__ import annotations

import grpc
from grpc_health.v1 import health_pb2

from engine.runtime.grpc_client import DialOptions

CHECK = "/grpc.health.v1.Health/Check"
UNREACHABLE = "UNREACHABLE"


def state_of(address: str, *, timeout_s: float = 1.0) -> str:
    """`SERVING`, `NOT_SERVING`, or `UNREACHABLE` when nobody answered in time, without TLS."""
    return state_behind(DialOptions(address), timeout_s=timeout_s)


def state_behind(options: DialOptions, *, timeout_s: float) -> str:
    """As `state_of`, with certificates when the options say so. Raises `OSError` when their files cannot be read."""
    with _channel(options) as channel:
        check = channel.unary_unary(
            CHECK,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            answer = check(health_pb2.HealthCheckRequest(), timeout=timeout_s)
        except grpc.RpcError:
            return UNREACHABLE
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


def _channel(options: DialOptions) -> grpc.Channel:
    if options.tls:
        return grpc.secure_channel(options.target, options.credentials())
    return grpc.insecure_channel(options.target)
