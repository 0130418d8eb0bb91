"""What the tests of this folder share: a place for an installation of their own.

Law: resources only.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine_site import EngineSite, site_in


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the database's own account can enter too, which pytest's private folders do not allow."""
    folder = Path(tempfile.mkdtemp(prefix="gouji-chaos-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def site(folder: Path) -> Iterator[EngineSite]:
    """PostgreSQL and NATS, and engines as a test wants them; some tests have a whole installation instead."""
    with site_in(folder) as site:
        yield site
