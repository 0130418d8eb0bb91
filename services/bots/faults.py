"""What a house player does about a call that failed: try again, or stop.

Law: two exceptions and the one table from gRPC statuses to them.
"""

from __future__ import annotations

import grpc
from google.rpc import error_details_pb2, status_pb2

from engine.runtime.statuses import DETAILS_KEY


class TryAgain(Exception):
    """The call broke or the service is not there: back off and come back from the last version."""


class Stop(Exception):
    """The service will not have this player here: coming back would not help."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_FINAL = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)


def fault_of(error: grpc.aio.AioRpcError) -> TryAgain | Stop:
    """Tell what a failed call means for the caller."""
    reason = reason_of(error)
    return Stop(reason) if error.code() in _FINAL else TryAgain(reason)


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """The machine-readable reason of a failed call, the status' name where there is none."""
    details = dict(error.trailing_metadata() or ()).get(DETAILS_KEY, b"")
    for detail in status_pb2.Status.FromString(bytes(details)).details if details else ():
        told = error_details_pb2.ErrorInfo()
        if detail.Unpack(told):
            return str(told.reason)
    return str(error.code().name)
