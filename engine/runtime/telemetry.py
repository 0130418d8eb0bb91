"""Metrics of one process, and the port where Prometheus reads them.

Law: owns the registry; who measures gets it by constructor. Nothing is registered at import.
"""

from __future__ import annotations

import asyncio
from threading import Thread
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, start_http_server


def new_registry() -> CollectorRegistry:
    """Make a registry that already measures the process itself."""
    registry = CollectorRegistry(auto_describe=True)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


class MetricsPort:
    """Serves `/metrics` over HTTP from a thread of its own, so that a busy loop is still seen."""

    def __init__(self, server: WSGIServer, thread: Thread) -> None:
        self._server = server
        self._thread = thread

    @classmethod
    def open(cls, registry: CollectorRegistry, host: str, port: int) -> MetricsPort:
        """Listen; port 0 takes any that is free. Raises `OSError` when the port is taken."""
        return cls(*start_http_server(port, host, registry))

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_port)

    async def stop(self) -> None:
        """Close the port."""
        await asyncio.to_thread(self._shut)

    def _shut(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
