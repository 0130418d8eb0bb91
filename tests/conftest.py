"""What every test may use: the fixtures of `tests/fixtures`, nothing else."""

import os

# Tests start and restart servers, by fork, while gRPC runs; its own fork handlers would crash such a child now and then.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

pytest_plugins = ["tests.fixtures.servers", "tests.fixtures.stores", "tests.fixtures.schemas"]
