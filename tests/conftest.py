"""What every test may use: the fixtures of `tests/fixtures`, nothing else."""

import os
import signal

# Tests start and restart servers, by fork, while gRPC runs; its own fork handlers would crash such a child now and then.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

pytest_plugins = ["tests.fixtures.servers", "tests.fixtures.stores", "tests.fixtures.schemas"]


def pytest_configure() -> None:
    """End the session by a polite kill as by Ctrl-C, so that no server is left behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
