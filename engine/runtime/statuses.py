"""The one table from exceptions to gRPC statuses, and how a status tells its reason.

Law: no servicer calls `abort`; what it raises is looked up here. A fault's sentence and reason reach the caller in
`google.rpc.ErrorInfo` (domain `gouji`); of any other exception he learns nothing but the request id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from engine.runtime import bus, faults
from engine.runtime.limits import RETRY_AFTER

DOMAIN = "gouji"
DETAILS_KEY = "grpc-status-details-bin"

_Code = grpc.StatusCode

STATUSES: Mapping[type[Exception], grpc.StatusCode] = {
    faults.NotFound: _Code.NOT_FOUND,
    faults.MalformedRequest: _Code.INVALID_ARGUMENT,
    faults.Unauthenticated: _Code.UNAUTHENTICATED,
    faults.PermissionDenied: _Code.PERMISSION_DENIED,
    faults.AlreadyExists: _Code.ALREADY_EXISTS,
    faults.FailedPrecondition: _Code.FAILED_PRECONDITION,
    faults.Aborted: _Code.ABORTED,
    faults.Busy: _Code.RESOURCE_EXHAUSTED,
    faults.Unavailable: _Code.UNAVAILABLE,
    faults.DeadlineExceeded: _Code.DEADLINE_EXCEEDED,
    bus.NoResponders: _Code.UNAVAILABLE,
    bus.BusUnavailable: _Code.UNAVAILABLE,
    bus.RequestTimedOut: _Code.DEADLINE_EXCEEDED,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a caller is told of a failure."""

    code: grpc.StatusCode
    reason: str
    detail: str
    metadata: Mapping[str, str] = field(default_factory=dict)

    def trailing(self) -> tuple[tuple[str, bytes], ...]:
        """The trailing metadata that carries reason and metadata."""
        status = status_pb2.Status(code=self.code.value[0], message=self.detail, details=self._details())
        return ((DETAILS_KEY, status.SerializeToString()),)

    def _details(self) -> list[any_pb2.Any]:
        details = [_packed(error_details_pb2.ErrorInfo(reason=self.reason, domain=DOMAIN, metadata=self.metadata))]
        if RETRY_AFTER in self.metadata:
            delay = duration_pb2.Duration()
            delay.FromMilliseconds(int(self.metadata[RETRY_AFTER]))
            details.append(_packed(error_details_pb2.RetryInfo(retry_delay=delay)))
        return details


def answer_to(error: Exception, request_id: str) -> Answer:
    """Look an exception up, by its own class or the nearest above; what is not in the table is `INTERNAL`."""
    code = next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), None)
    if code is None:
        metadata = {"request_id": request_id}
        return Answer(_Code.INTERNAL, "INTERNAL", "Something went wrong; it has been noted.", metadata)
    if isinstance(error, faults.Fault):
        return Answer(code, error.reason, error.detail, error.metadata)
    return Answer(code, code.name, "The house cannot be reached right now; try again.")


def _packed(detail: error_details_pb2.ErrorInfo | error_details_pb2.RetryInfo) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed
