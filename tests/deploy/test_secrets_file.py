import stat
from pathlib import Path

from deploy.local.secrets_file import kept


def test_a_secret_stays_what_it_was_when_another_joins(tmp_path: Path) -> None:
    first = kept(tmp_path / "secrets.json", ["engine"])

    both = kept(tmp_path / "secrets.json", ["engine", "table"])

    assert both["engine"] == first["engine"]
    assert both["table"] != both["engine"]


def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    kept(tmp_path / "secrets.json", ["engine"])

    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600
