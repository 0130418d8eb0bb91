import json
import subprocess
import sys

import pytest


@pytest.mark.timeout(240)
@pytest.mark.parametrize("switches", [[], ["--together"]])
def test_a_match_of_two_deals_is_played_rated_and_proved_from_its_log(switches: list[str]) -> None:
    command = [sys.executable, "-m", "services.cli", "demo", "--json", *switches]

    played = subprocess.run(command, capture_output=True, text=True, check=False)

    assert played.returncode == 0, played.stdout + played.stderr
    result = json.loads(played.stdout)
    assert result["problems"] == []
    assert result["deals"] == 2
    assert result["versions"] > 100
    assert result["seconds"] < 120
