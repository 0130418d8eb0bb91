"""What every test may use: the fixtures of `tests/fixtures`, nothing else."""

pytest_plugins = ["tests.fixtures.servers", "tests.fixtures.stores", "tests.fixtures.schemas"]
