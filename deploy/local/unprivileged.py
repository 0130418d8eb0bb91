"""What root needs to run a server that refuses root: another account, and files which that account can reach.

Law: nothing on the machine is changed outside the folder that is given; no user is added, no mode of a parent altered.
"""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

from deploy.local.process import Account, ServerFailed

PRIVATE = 0o700
OTHERS_ENTER = 0o001
OTHERS_READ_AND_ENTER = 0o005


def account() -> Account | None:
    """The account `nobody` when we are root, else None: we already are somebody without rights."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def own_folder(folder: Path, owner: Account | None) -> None:
    """Make the folder, private to its owner. Raises `ServerFailed` when the owner could not enter a parent."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(PRIVATE)
    if owner is None:
        return
    if (barrier := _barrier(folder.resolve().parent)) is not None:
        raise ServerFailed(
            f"as root the database runs as `nobody`, who may not enter {barrier}: choose another data folder,"
            " for example /var/lib/gouji"
        )
    os.chown(folder, owner.uid, owner.gid)


def reachable_binaries(binaries: Path, copies: Path, owner: Account | None) -> Path:
    """The `bin` folder itself, or a copy of its whole installation when the owner could not execute it there."""
    if owner is None or _barrier(binaries.resolve()) is None:
        return binaries
    copy = copies / binaries.parent.name
    if not copy.exists():
        partial = copy.with_name(f"{copy.name}.{os.getpid()}")
        shutil.copytree(binaries.parent, partial, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
        for path in (partial, *partial.rglob("*")):
            path.chmod(path.stat().st_mode | OTHERS_READ_AND_ENTER) if not path.is_symlink() else None
        partial.rename(copy)
    return copy / binaries.name


def _barrier(path: Path) -> Path | None:
    """The first folder on the way that others may not enter."""
    way = (*reversed(path.parents), path)
    return next((step for step in way if not step.stat().st_mode & OTHERS_ENTER), None)
