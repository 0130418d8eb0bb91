"""What no process may ever log, whatever is done to it.

Law: pure. A start that is given up because database or bus cannot be reached is no outcry: its supervisor tries again.
"""

from __future__ import annotations

import re

CRIES = ("quarantined", "critical", "never retrieved", "facts parked", "nats: encountered error")

_OUT_OF_REACH = re.compile(r'"event": "start_failed".*\\n(?:\w+\.)*\w*Unavailable(?:: [^"\\]*)?"')


def is_outcry(line: str) -> bool:
    """Whether this line of a log must never be there."""
    return any(cry in line for cry in CRIES) and not _OUT_OF_REACH.search(line)
