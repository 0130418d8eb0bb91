import os
import shutil
from pathlib import Path

import pytest

from deploy.local.postgres_server import PostgresServer, binaries
from deploy.local.process import Account, ServerFailed
from deploy.local.unprivileged import account, own_folder, reachable_binaries

SOMEBODY = Account(os.getuid(), os.getgid())


def an_installation(place: Path) -> Path:
    programs = place / "package" / "pginstall" / "bin"
    programs.mkdir(parents=True)
    (programs / "postgres").write_text("program")
    (place / "package.libs").mkdir()
    (place / "package.libs" / "libpq.so").write_text("library")
    return programs


def test_binaries_that_anybody_may_run_are_used_where_they_are(tmp_path: Path) -> None:
    programs = an_installation(tmp_path)

    assert reachable_binaries(programs, tmp_path / "copies", None) == programs


def test_binaries_behind_a_closed_door_are_copied_with_their_libraries(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    programs = an_installation(tmp_path / "home")

    copied = reachable_binaries(programs, tmp_path / "copies", SOMEBODY)

    assert (copied / "postgres").read_text() == "program"
    assert (copied.parent.parent.parent / "package.libs" / "libpq.so").read_text() == "library"


def test_a_copy_is_made_once(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    programs = an_installation(tmp_path / "home")
    first = reachable_binaries(programs, tmp_path / "copies", SOMEBODY)
    (first / "postgres").write_text("kept")

    assert (reachable_binaries(programs, tmp_path / "copies", SOMEBODY) / "postgres").read_text() == "kept"


def test_a_folder_behind_a_closed_door_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)

    with pytest.raises(ServerFailed, match="/var/lib/gouji"):
        own_folder(tmp_path / "home" / "postgres", SOMEBODY)


def test_a_server_runs_from_copied_binaries(server_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root: what a checkout under a closed home folder needs; else the binaries are simply run."""
    home = server_folder / "home"
    home.mkdir(mode=0o700)
    package = binaries().parent.parent
    for folder in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(folder, home / folder.name, symlinks=True)
    monkeypatch.setenv("GOUJI_POSTGRES_BIN", str(home / package.name / "pginstall" / "bin"))
    server = PostgresServer(server_folder / "copied")

    server.start()

    assert server.is_running()
    assert (server_folder / "copied" / "programs").exists() == (account() is not None)
    server.stop()
