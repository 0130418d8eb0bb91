"""A gRPC server with everything that every service's needs: TLS, limits, keepalive, health, reflection.

Law: knows no service; `main.py` adds them. A service is SERVING when its own check says so, asked once a second; the
server as a whole when all are. A stop says NOT_SERVING first, then lets calls finish within the grace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

_log = structlog.get_logger(__name__)

_CHECK_EVERY = 1.0
_CHECK_WITHIN = 2.0

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING

Register = Callable[[grpc.aio.Server], None]
"""Adds one service's handlers to the server."""
IsReady = Callable[[], Awaitable[bool]]
"""Tells whether the service can do its work now."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of a certificate chain and its key (PEM), read again for each connection, so that they may be renewed.

    With `client_ca` only clients with a certificate of that authority are let in.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def credentials(self) -> grpc.ServerCredentials:
        """Load the files; raises `OSError`."""
        return grpc.dynamic_ssl_server_credentials(
            self._configuration(), self._configuration, require_client_authentication=self.client_ca is not None
        )

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        client_ca = self.client_ca.read_bytes() if self.client_ca else None
        pair = (self.key.read_bytes(), self.certificate.read_bytes())
        return grpc.ssl_server_certificate_configuration([pair], client_ca)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where to listen and how much one message, connection and caller may take. Sizes in bytes, times in ms."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: Tls | None = None
    most_received: int = 256 * 1024
    most_sent: int = 4 * 1024 * 1024
    most_streams: int = 1000
    keepalive: int = 10_000
    keepalive_within: int = 5_000

    def arguments(self) -> list[tuple[str, int]]:
        """Spell this out for gRPC."""
        return [
            ("grpc.max_receive_message_length", self.most_received),
            ("grpc.max_send_message_length", self.most_sent),
            ("grpc.max_concurrent_streams", self.most_streams),
            ("grpc.max_metadata_size", 16 * 1024),
            ("grpc.keepalive_time_ms", self.keepalive),
            ("grpc.keepalive_timeout_ms", self.keepalive_within),
            # gRPC waits for the longer of the two, and by itself this one is a minute.
            ("grpc.http2.ping_timeout_ms", self.keepalive_within),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ("grpc.so_reuseport", 0),
        ]


class GrpcServer:
    """One listening port and the services behind it."""

    def __init__(self, options: ServerOptions, interceptors: Sequence[grpc.aio.ServerInterceptor]) -> None:
        self._options = options
        self._server = grpc.aio.server(interceptors=interceptors, options=options.arguments())
        self._health = health.aio.HealthServicer()
        self._checks: dict[str, IsReady] = {}
        self._checking: asyncio.Task[None] | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """The port that is listened on, once started."""
        return self._port

    def add(self, name: str, register: Register, is_ready: IsReady) -> None:
        """Serve the service of this full name (`gouji.table.v1.TableService`)."""
        register(self._server)
        self._checks[name] = is_ready

    async def start(self) -> None:
        """Listen; raises `OSError` when the port is taken or a TLS file is not readable."""
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (*self._checks, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)
        self._port = self._bind()
        await self._check()
        await self._server.start()
        self._checking = asyncio.create_task(self._keep_checking())
        _log.info("listening", host=self._options.host, port=self._port, tls=self._options.tls is not None)

    async def stop(self, grace: float = 10.0) -> None:
        """Say that nothing more is served, let calls finish, cut off what is left after `grace` seconds."""
        if self._checking is not None:
            self._checking.cancel()
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace)

    def _bind(self) -> int:
        address = f"{self._options.host}:{self._options.port}"
        try:
            if self._options.tls is None:
                return self._server.add_insecure_port(address)
            return self._server.add_secure_port(address, self._options.tls.credentials())
        except RuntimeError as taken:
            raise OSError(f"cannot listen on {address}") from taken

    async def _keep_checking(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_EVERY)
            await self._check()

    async def _check(self) -> None:
        ready = await asyncio.gather(*(_is_ready(name, check) for name, check in self._checks.items()))
        for name, is_ready in zip(self._checks, ready, strict=True):
            await self._health.set(name, _SERVING if is_ready else _NOT_SERVING)
        await self._health.set("", _SERVING if all(ready) else _NOT_SERVING)


async def _is_ready(name: str, check: IsReady) -> bool:
    try:
        async with asyncio.timeout(_CHECK_WITHIN):
            return await check()
    except Exception:  # noqa: BLE001 - a check that cannot tell says no
        _log.warning("readiness_unknown", service=name, exc_info=True)
        return False
