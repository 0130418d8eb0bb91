"""What the tests of this folder share: a place for an installation of their own.

Law: resources only.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the database's own account can enter too, which pytest's private folders do not allow."""
    folder = Path(tempfile.mkdtemp(prefix="gouji-chaos-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
