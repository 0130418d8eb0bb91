"""What no process may ever log, whatever is done to it.

Law: pure. A start that is given up because database or bus cannot be reached is no outcry: its supervisor tries again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

CRIES = ("quarantined", "critical", "never retrieved", "facts parked", "nats: encountered error")

_OUT_OF_REACH = re.compile(r'"event": "start_failed".*\\n(?:\w+\.)*\w*Unavailable(?:: [^"\\]*)?"')


def is_outcry(line: str) -> bool:
    """Whether this line of a log must never be there."""
    return any(cry in line for cry in CRIES) and not _OUT_OF_REACH.search(line)


def has_given_up_its_start(log: Sequence[str]) -> bool:
    """Whether the process that wrote the end of this log never came to serve, so that it is ending by itself."""
    lives = [line for line in log if '"event": "started"' in line or '"event": "start_failed"' in line]
    return bool(lives) and '"event": "start_failed"' in lives[-1]
