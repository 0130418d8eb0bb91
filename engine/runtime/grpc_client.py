"""Dialling a gRPC server: TLS or plain, keepalive, the caller's token on every call, patience with a server that restarts.

Law: knows no service. A call that a server has not taken up is tried again by gRPC itself, with growing, jittered
pauses; so what changes something carries a command id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

Token = Callable[[], str]
"""Tells the token to use now; asked for each call."""

_PATIENCE = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{}],
                "retryPolicy": {
                    "maxAttempts": 4,
                    "initialBackoff": "0.2s",
                    "maxBackoff": "3s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
        ]
    }
)


@dataclass(frozen=True, slots=True)
class DialOptions:
    """How to reach a server. `ca`: PEM file of the authority to trust, None for the system's; plain without `tls`."""

    target: str
    tls: bool = False
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    most_received: int = 4 * 1024 * 1024
    keepalive: int = 10_000
    keepalive_within: int = 5_000

    def arguments(self) -> list[tuple[str, int | str]]:
        """Spell this out for gRPC."""
        return [
            ("grpc.max_receive_message_length", self.most_received),
            ("grpc.keepalive_time_ms", self.keepalive),
            ("grpc.keepalive_timeout_ms", self.keepalive_within),
            # gRPC waits for the longer of the two, and by itself this one is a minute.
            ("grpc.http2.ping_timeout_ms", self.keepalive_within),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 5_000),
            ("grpc.service_config", _PATIENCE),
        ]

    def credentials(self) -> grpc.ChannelCredentials:
        """Load the files; raises `OSError`."""
        files = (path.read_bytes() if path else None for path in (self.ca, self.key, self.certificate))
        return grpc.ssl_channel_credentials(*files)


def dial(options: DialOptions, token: Token | None = None) -> grpc.aio.Channel:
    """Open a channel; it connects with its first call, and again whenever it must. Close it when done."""
    interceptors = bearing(token) if token else []
    if options.tls:
        return grpc.aio.secure_channel(
            options.target, options.credentials(), options=options.arguments(), interceptors=interceptors
        )
    return grpc.aio.insecure_channel(options.target, options=options.arguments(), interceptors=interceptors)


def bearing(token: Token) -> Sequence[grpc.aio.ClientInterceptor]:
    """Put the token on every call of a channel; one interceptor for each kind of call, as gRPC wants it."""
    return [_UnaryUnary(token), _UnaryStream(token), _StreamUnary(token), _StreamStream(token)]


class _Bearing:
    def __init__(self, token: Token) -> None:
        self._token = token

    async def _with_token(self, proceed: Any, details: grpc.aio.ClientCallDetails, request: Any) -> Any:
        metadata = grpc.aio.Metadata(*(details.metadata or ()), ("authorization", f"Bearer {self._token()}"))
        named = grpc.aio.ClientCallDetails(
            details.method, details.timeout, metadata, details.credentials, details.wait_for_ready
        )
        return await proceed(named, request)


class _UnaryUnary(_Bearing, grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return await self._with_token(continuation, client_call_details, request)


class _UnaryStream(_Bearing, grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return await self._with_token(continuation, client_call_details, request)


class _StreamUnary(_Bearing, grpc.aio.StreamUnaryClientInterceptor):
    async def intercept_stream_unary(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return await self._with_token(continuation, client_call_details, request_iterator)


class _StreamStream(_Bearing, grpc.aio.StreamStreamClientInterceptor):
    async def intercept_stream_stream(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return await self._with_token(continuation, client_call_details, request_iterator)
