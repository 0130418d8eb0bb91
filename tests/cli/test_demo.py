import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from services.cli.demo import proof
from services.cli.demo.evening import PLAYERS, Evening
from services.cli.demo.ranking_client import Rating
from services.cli.demo.summary import places_of, table_of

LIVE = {1: "a", 2: "b"}
DEAL = "gouji 1\n---\n0 TT # @4\n= places 3 0 1 2 4 5\n= points even 6\n"


def an_evening() -> Evening:
    return Evening(
        table_id="table",
        seats={player: seat for seat, player in enumerate(PLAYERS)},
        points=(6, -6, 6, -6, 6, -6),
        ratings=dict.fromkeys(PLAYERS, Rating(1500, 2, 1)),
        deals=(DEAL, DEAL),
        witnessed=LIVE,
        updates=100,
    )


def told(replayed: str, verdict: int = 0) -> Callable[..., subprocess.CompletedProcess[str]]:
    """What the commands of the proof print and how they exit."""

    def gouji(arguments: list[str], *_: object) -> subprocess.CompletedProcess[str]:
        if arguments[0] == "replay":
            return subprocess.CompletedProcess(arguments, 0, replayed, "")
        return subprocess.CompletedProcess(arguments, verdict, "deal-1.gouji:7: wrong" if verdict else "", "")

    return gouji


def replayed(hashes: dict[int, str]) -> str:
    return "".join(f'{{"version": {version}, "state_hash": "{value}"}}\n' for version, value in hashes.items())


def problems(monkeypatch: pytest.MonkeyPatch, folder: Path, log: str, verdict: int = 0) -> tuple[str, ...]:
    monkeypatch.setattr(proof, "_gouji", told(log, verdict))
    return proof.prove(an_evening(), folder, {}).problems


def test_nothing_is_wrong_when_the_log_says_what_the_engine_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert problems(monkeypatch, tmp_path, replayed(LIVE)) == ()


@pytest.mark.parametrize("log", [{1: "a", 2: "x"}, {1: "a"}, {1: "a", 2: "b", 3: "c"}])
def test_a_state_that_differs_is_named_by_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: dict[int, str]
) -> None:
    found = problems(monkeypatch, tmp_path, replayed(log))

    assert len(found) == 1
    assert found[0].startswith(("version 2", "version 3"))


def test_a_log_that_cannot_be_replayed_proves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert problems(monkeypatch, tmp_path, "") == ("the log of the table cannot be replayed",)


def test_a_deal_that_does_not_verify_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert problems(monkeypatch, tmp_path, replayed(LIVE), verdict=1) == ("deal-1.gouji:7: wrong",)


def test_places_are_read_out_of_an_exported_deal() -> None:
    assert places_of(DEAL) == [3, 0, 1, 2, 4, 5]


def test_every_player_stands_in_the_summary() -> None:
    table = table_of(an_evening())

    assert table.row_count == len(PLAYERS)
    assert list(table.columns[1].cells) == list(PLAYERS)


def test_the_command_line_starts_without_the_servers_libraries() -> None:
    heavy = "print(sorted({'sqlalchemy', 'grpc', 'psycopg', 'nats'} & set(sys.modules)))"
    program = f"import sys; import services.cli.main; {heavy}"

    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"
