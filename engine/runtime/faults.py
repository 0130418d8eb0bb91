"""Why a request was not served, in kinds that say what the caller should do.

Law: exceptions only; no transport, no driver. Each fault carries a machine-readable `reason` in UPPER_SNAKE_CASE, which a
client may switch on, and a short English sentence for a reader. Nothing secret goes into either: both are shown to the
caller. `interceptors.py` has the one table from these kinds to gRPC statuses.
"""

from __future__ import annotations

from collections.abc import Mapping


class Fault(Exception):
    """The request was not served."""

    reason = "FAULT"

    def __init__(
        self, detail: str = "", *, reason: str | None = None, metadata: Mapping[str, str] | None = None
    ) -> None:
        """Take the sentence shown (the class docstring when empty), a closer reason, and public key-value pairs."""
        super().__init__(detail or (type(self).__doc__ or "").splitlines()[0])
        self.reason = reason or type(self).reason
        self.metadata = dict(metadata or {})

    @property
    def detail(self) -> str:
        """The sentence for a reader."""
        return str(self.args[0])


class NotFound(Fault):
    """There is no such thing."""

    reason = "NOT_FOUND"


class MalformedRequest(Fault):
    """The request makes no sense: mend it before sending it again."""

    reason = "MALFORMED_REQUEST"


class Unauthenticated(Fault):
    """Who is asking is not known: sign in again."""

    reason = "UNAUTHENTICATED"


class PermissionDenied(Fault):
    """The caller may not do this."""

    reason = "PERMISSION_DENIED"


class NotYourSeat(PermissionDenied):
    """The caller does not hold this seat."""

    reason = "NOT_YOUR_SEAT"


class AlreadyExists(Fault):
    """The thing is there already, and it is another one."""

    reason = "ALREADY_EXISTS"


class FailedPrecondition(Fault):
    """The request does not fit the present state: look again before asking again."""

    reason = "FAILED_PRECONDITION"


class Aborted(Fault):
    """What was under way has been ended: look at the reason before starting again."""

    reason = "ABORTED"


class Busy(Fault):
    """Too much at once: slow down, then try again."""

    reason = "BUSY"


class Unavailable(Fault):
    """Something needed cannot be reached right now: back off and try again."""

    reason = "UNAVAILABLE"


class DeadlineExceeded(Fault):
    """No answer in time; whether the request took effect is unknown."""

    reason = "DEADLINE_EXCEEDED"
