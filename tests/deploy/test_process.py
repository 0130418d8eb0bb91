import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deploy.local.process import ChildProcess, ServerFailed, command_line, stop_orphan

SLEEP = "import sys, time; print('awake', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('awake', flush=True); time.sleep(600)"
)
UNTIL_INPUT_ENDS = "import sys; print('awake', flush=True); sys.stdin.read(); print('left', flush=True)"


def started(program: str, log: Path, *, ends_with_us: bool = False) -> ChildProcess:
    child = ChildProcess([sys.executable, "-c", program], log, ends_with_us=ends_with_us)
    child.start()
    while child.is_running() and "awake" not in log.read_text():
        pass
    return child


def test_a_stopped_child_is_gone(tmp_path: Path) -> None:
    child = started(SLEEP, tmp_path / "log")

    child.stop()

    assert not child.is_running()


def test_a_child_that_does_not_stop_in_time_is_killed(tmp_path: Path) -> None:
    child = started(STUBBORN, tmp_path / "log")

    child.stop(grace_s=0.2)

    assert child.exit_code() == -9


def test_a_child_notices_that_its_supervisor_is_gone(tmp_path: Path) -> None:
    child = started(UNTIL_INPUT_ENDS, tmp_path / "log", ends_with_us=True)

    child._close_input()
    while child.is_running():
        pass

    assert "left" in (tmp_path / "log").read_text()


def test_a_failure_tells_the_end_of_the_log(tmp_path: Path) -> None:
    child = started("raise SystemExit('no such port')", tmp_path / "log")

    assert "no such port" in str(child.failure("it ended"))


def test_an_orphan_is_stopped_by_its_pid_file(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEP, "gouji-orphan"], stdout=subprocess.DEVNULL) as orphan:
        (tmp_path / "pid").write_text(f"{orphan.pid}\nmore\n")
        while "gouji-orphan" not in command_line(orphan.pid):
            pass
        threading.Thread(target=orphan.wait).start()

        stop_orphan(tmp_path / "pid", "gouji-orphan")

        assert orphan.wait(5) != 0


def test_a_process_that_only_reused_the_number_is_left_alone(tmp_path: Path) -> None:
    child = started(SLEEP, tmp_path / "log")
    (tmp_path / "pid").write_text(str(child.pid))

    stop_orphan(tmp_path / "pid", "another program")

    assert child.is_running()
    child.stop()


def test_a_child_that_was_never_started_has_no_pid(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed):
        _ = ChildProcess(["true"], tmp_path / "log").pid


def test_a_program_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="cannot run"):
        ChildProcess([str(tmp_path / "nothing")], tmp_path / "log").start()
