"""What came of a run, for people and for programs.

Law: shows a report; computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table

from tests.chaos.harness.run import Report

MOST = 50
"""Violations that are shown one by one."""


def as_json(report: Report) -> dict[str, object]:
    """The report as plain values; laws by their names."""
    found = [{"law": one.law.name, "where": one.where, "what": one.what} for one in report.violations]
    return asdict(report) | {"violations": found}


def as_text(report: Report) -> RenderableType:
    """The report as a table, the violations below it."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in _lines(report):
        table.add_row(name, value)
    wrong = [f"[red]✗ {one.law.name}[/] {one.where}: {one.law.value}: {one.what}" for one in report.violations[:MOST]]
    held = "[green]every law held[/]" if not wrong else f"[red]{len(report.violations)} violations[/]"
    return Group(table, *wrong, held)


def _lines(report: Report) -> list[tuple[str, str]]:
    return [
        ("blows", _counts(report.fallen)),
        ("upon", _counts(report.hit)),
        ("ended by themselves", _counts(report.ended)),
        ("tables", f"{report.tables}, {report.finished} closed, {report.events} events, {report.timeouts} timeouts"),
        ("clients", f"{report.acknowledged} accepted, {report.refused} refused, {report.streams} streams"),
        ("compared", f"{report.shown} events shown, {report.witnessed} states told, {report.rated} results counted"),
        ("bothers", _counts(report.bothers)),
        (
            "healed in",
            f"{report.healed_s:.1f} s, matches over {report.finished_s:.1f} s, settled {report.settled_s:.1f} s",
        ),
        ("in all", f"{report.seconds:.0f} s"),
    ]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
