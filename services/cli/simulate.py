"""`gouji simulate`: deals in process by simple players, every law checked, every rule that fired counted.

Law: spreads matches over processes, adds up and prints; the playing is `engine.service.simulation`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from services.cli.output import ERR, OUT, fail, print_json

if TYPE_CHECKING:
    from engine.rules import Variant
    from engine.service.simulation import Tally

MATCH = 10
"""Deals that one simulated match has, so that debts and leads are carried over."""


def simulate(  # noqa: PLR0917 - the options of one command
    variant: Annotated[str, typer.Option(help="A named variant, or `all`.")] = "qingdao-charter",
    deals: Annotated[int, typer.Option(min=1, max=10_000_000, help="Deals for each variant.")] = 200,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Processes.")] = 1,
    switch: Annotated[list[str] | None, typer.Option(help="switch=value, as often as needed.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed plays the same deals.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each variant.")] = False,
) -> None:
    """Play deals with simple players; exit 1 when a law is broken."""
    from engine.service.simulation import Tally

    together = Tally()
    for chosen in _variants(variant, switch or []):
        started = time.monotonic()
        tally = _play(chosen, deals, jobs, seed)
        _show(chosen.key, tally, time.monotonic() - started, as_json=as_json)
        together.add(tally)
    if variant == "all" and not as_json:
        OUT.print(f"never in {together.deals} deals: {' '.join(together.never()) or 'nothing'}")


def _variants(key: str, switches: list[str]) -> Iterator[Variant]:
    from engine.rules import VARIANTS, ImpossibleVariant, resolve

    if any("=" not in switch for switch in switches):
        fail("--switch takes switch=value", code=2)
    values = dict(switch.split("=", 1) for switch in switches)
    try:
        yield from [resolve(name, values) for name in (VARIANTS if key == "all" else (key,))]
    except ImpossibleVariant as error:
        fail(str(error), code=2)


def _play(variant: Variant, deals: int, jobs: int, seed: int) -> Tally:
    from engine.service.simulation import LawBroken, Tally

    total = Tally()
    try:
        with Progress(console=ERR, transient=True) as progress:
            task = progress.add_task(variant.key, total=deals)
            for tally in _matches(variant, deals, jobs, seed):
                total.add(tally)
                progress.advance(task, tally.deals)
    except LawBroken as error:
        fail(f"{variant.key}: {error}")
    return total


def _matches(variant: Variant, deals: int, jobs: int, seed: int) -> Iterator[Tally]:
    lengths = [min(MATCH, deals - done) for done in range(0, deals, MATCH)]
    seeds = [f"{variant.key}:{seed}:{number}" for number in range(len(lengths))]
    match = partial(_match, variant)
    if jobs == 1:
        yield from map(match, lengths, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(match, lengths, seeds)


def _match(variant: Variant, deals: int, seed: str) -> Tally:
    from engine.service.simulation import TABLE, series

    return series(variant, deals, random.Random(seed), TABLE)  # noqa: S311 - a simulation repeats, it guards nothing


def _show(key: str, tally: Tally, seconds: float, *, as_json: bool) -> None:
    speed = round(tally.deals / seconds, 1)
    if as_json:
        print_json({"variant": key, "deals_per_second": speed, **tally.summary()})
        return
    table = Table("event", "times", "per deal", title=f"{key}: {tally.deals} deals, {speed} a second")
    for name, times in sorted(tally.events.items(), key=lambda item: -item[1]):
        table.add_row(name, str(times), f"{times / tally.deals:.3f}")
    OUT.print(table)
    OUT.print(f"never: {' '.join(tally.never()) or 'nothing'}")
    points = ", ".join(f"{value}: {times}" for value, times in sorted(tally.points.items()))
    OUT.print(f"points {points}; sweeps {tally.sweeps}; void {tally.voids}; {tally.per_deal():.0f} commands a deal")
