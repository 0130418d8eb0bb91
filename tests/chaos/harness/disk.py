"""A disk without room, as a running server meets it: no file of its process can grow any more.

Law: knows no server, and needs no right that a process's owner lacks. At this limit nats-server does what it does on a
file system that is full: it keeps nothing more, also when there is room again, until it is started anew.
"""

from __future__ import annotations

import resource


def fill(pid: int) -> None:
    """Leave this process no room. Linux alone can."""
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))


def clear(pid: int) -> None:
    """Give it all the room there is."""
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
