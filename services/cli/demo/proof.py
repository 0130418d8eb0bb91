"""What an evening must prove: the log alone tells the same as the live engine did, and each deal verifies offline.

Law: judges only; each check runs in a process of its own that knows the log, or the file, and nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.cli.demo.evening import Evening

CHECK_S = 60.0


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found. `problems` is empty when everything held."""

    versions: int
    deals: int
    problems: tuple[str, ...]


def prove(evening: Evening, folder: Path, environment: Mapping[str, str]) -> Proof:
    """Rebuild the table from its log, compare every state, verify every deal. `environment` is that of the engine."""
    replayed = _replay(evening.table_id, environment)
    files = _write_deals(evening, folder)
    verdict = _gouji(["verify", *map(str, files)], {"PATH": environment.get("PATH", "")})
    problems = (*_differences(evening.witnessed, replayed), *_complaints(verdict))
    return Proof(len(replayed), len(files), problems)


def _replay(table_id: str, environment: Mapping[str, str]) -> dict[int, str]:
    told = _gouji(["replay", table_id, "--json"], environment)
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    return {line["version"]: line["state_hash"] for line in lines}


def _differences(live: Mapping[int, str], replayed: Mapping[int, str]) -> list[str]:
    if not replayed:
        return ["the log of the table cannot be replayed"]
    versions = sorted(live.keys() | replayed.keys())
    return [
        f"version {version}: the log tells another state"
        for version in versions
        if live.get(version) != replayed.get(version)
    ]


def _complaints(verdict: subprocess.CompletedProcess[str]) -> list[str]:
    return [] if verdict.returncode == 0 else (verdict.stdout + verdict.stderr).splitlines()


def _write_deals(evening: Evening, folder: Path) -> list[Path]:
    files = [folder / f"deal-{number}.gouji" for number in range(1, len(evening.deals) + 1)]
    for file, text in zip(files, evening.deals, strict=True):
        file.write_text(text, encoding="utf-8")
    return files


def _gouji(arguments: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "services.cli", *arguments]
    return subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=CHECK_S, check=False)
