"""A run: an installation, players, blows; then healing, the end of all matches, and the evidence before the checker.

Law: the order of things and nothing else. Times are in seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import nats
from nats.aio.msg import Msg

from engine.runtime import subjects
from tests.chaos.harness import gathering, sabotage, trail
from tests.chaos.harness.blows import Havoc
from tests.chaos.harness.checker import Violation, violations
from tests.chaos.harness.crews import Club
from tests.chaos.harness.evidence import Evidence, Kind, Witnessed
from tests.chaos.harness.havoc import Blow, Fault, blows
from tests.chaos.harness.site import ENGINES, SETTINGS, Site
from tests.support.engine_bench import eventually

FINISH_S = 120.0
"""How long matches may go on after the healing; tables that have not ended by then must at least have moved."""
SETTLE_S = 90.0
WARM_UP_S = 60.0

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for. `nodes`: of NATS, one or three. `blows`: these instead of drawn ones. `warm_up`: so many answers before the first blow. `hasty`: players never think. `sabotage`: safeties that are taken out, to see that it is noticed."""

    seconds: float
    tables: int
    seed: int
    faults: Sequence[Fault] = tuple(Fault)
    finish_s: float = FINISH_S
    settle_s: float = SETTLE_S
    warm_up: int = 0
    hasty: bool = False
    sabotage: str = ""
    nodes: int = 1
    blows: Sequence[Blow] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it. `fallen`: blows by fault; `ended`: processes that ended by themselves; `bothers`: by reason."""

    violations: Sequence[Violation]
    tables: int
    finished: int
    events: int
    acknowledged: int
    refused: int
    streams: int
    shown: int
    witnessed: int
    rated: int
    timeouts: int
    fallen: Mapping[str, int]
    hit: Mapping[str, int]
    healed_s: float
    finished_s: float
    settled_s: float
    ended: Mapping[str, int] = field(default_factory=dict)
    bothers: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0


async def run(plan: Plan, folder: Path, tell: Tell) -> Report:
    """Run it. Raises `ServerFailed` when the installation does not start or does not come back."""
    began = time.monotonic()
    async with _site(plan, folder) as site:
        tell("starting")
        await site.start()
        club, witnessed = Club(site, plan.seed, hasty=plan.hasty), list[Witnessed]()
        # Not by the house's own bus, which would lay out streams.
        bus = await nats.connect(
            site.bus_url.split(","), name="chaos", max_reconnect_attempts=-1, reconnect_time_wait=1
        )
        await bus.subscribe(subjects.WITNESSES, cb=_hear(witnessed))
        havoc = Havoc(site)
        try:
            times = await _live(plan, site, club, havoc, tell)
            evidence = await _evidence(plan, site, club, witnessed, times)
        finally:
            await club.leave()
            await bus.close()
    tell("judging")
    report = _report(evidence, times, dict(havoc.fallen), dict(havoc.hit))
    return replace(report, ended=dict(site.ended), bothers=dict(club.bothers), seconds=time.monotonic() - began)


def _site(plan: Plan, folder: Path) -> Site:
    if plan.sabotage:
        switch = {sabotage.SWITCH: plan.sabotage}
        return Site(folder, nodes=plan.nodes, settings=SETTINGS | switch, program=sabotage.PROGRAM)
    return Site(folder, "tests.chaos.harness.engine" if Fault.CLOCK in plan.faults else "", nodes=plan.nodes)


@dataclass(frozen=True, slots=True)
class _Times:
    healed: Mapping[UUID, int]
    settled: bool
    healed_s: float
    finished_s: float
    settled_s: float


async def _live(plan: Plan, site: Site, club: Club, havoc: Havoc, tell: Tell) -> _Times:
    """Play through everything to the end."""

    async def has_warmed_up() -> bool:
        return len(club.book.said) >= plan.warm_up

    club.come(plan.tables)
    progress = asyncio.create_task(_progress(club, havoc, tell))
    try:
        await eventually(has_warmed_up, WARM_UP_S)
        drawn = blows(plan.seed, plan.seconds, plan.faults, site.targets)
        await havoc.wreak(drawn if plan.blows is None else plan.blows)
        healing = time.monotonic()
        tell("healing")
        club.late.set()
        await site.heal()
        healed = await asyncio.to_thread(gathering.open_tables, site.dsn)
        healed_at = time.monotonic()
        club.desert()
        await club.finish(plan.finish_s)
        finished_at = time.monotonic()
        tell("settling")
        settled = await gathering.settle(site.dsn, site.bus_url, plan.settle_s, with_engines=True)
    finally:
        progress.cancel()
    return _Times(healed, settled, healed_at - healing, finished_at - healed_at, time.monotonic() - finished_at)


async def _evidence(plan: Plan, site: Site, club: Club, witnessed: Sequence[Witnessed], times: _Times) -> Evidence:
    """Stop the players, then the engines, so that nothing moves any more; let the rest take what is there; look."""
    waiting = club.waiting
    await club.leave()
    ended_at_ms = time.time_ns() // 1_000_000
    for engine in ENGINES:
        await site.end(engine)
    settled = await gathering.settle(site.dsn, site.bus_url, plan.settle_s, with_engines=False)
    kept = await gathering.evidence(site.dsn, site.bus_url, club.book)
    return replace(
        kept,
        terms=trail.terms(site.dsn),
        witnessed=witnessed,
        healed=times.healed,
        ended_at_ms=ended_at_ms,
        settled=settled and times.settled,
        waiting=waiting,
        outcries=site.outcries(),
    )


async def _progress(club: Club, havoc: Havoc, tell: Tell) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(1)
        answers, blows_so_far = len(club.book.said), sum(havoc.fallen.values())
        at_s = time.monotonic() - began
        tell(f"{at_s:.0f} s: {len(club.book.tables)} tables, {answers} answers, {blows_so_far} blows")


def _hear(witnessed: list[Witnessed]) -> Callable[[Msg], Awaitable[None]]:
    async def hear(message: Msg) -> None:
        version, state = message.data.decode().split()
        witnessed.append(Witnessed(UUID(message.subject.rsplit(".", 1)[1]), int(version), state))

    return hear


def _report(evidence: Evidence, times: _Times, fallen: Mapping[str, int], hit: Mapping[str, int]) -> Report:
    answers = Counter(said.accepted_at is not None for said in evidence.said)
    truths = evidence.truths.values()
    return Report(
        violations=violations(evidence),
        tables=len(truths),
        finished=sum(truth.head.closed for truth in truths),
        events=sum(len(truth.log) for truth in truths),
        acknowledged=answers[True],
        refused=answers[False],
        streams=len(evidence.seen),
        shown=sum(mark.kind is Kind.EVENT for seen in evidence.seen for mark in seen.marks),
        witnessed=len(evidence.witnessed),
        rated=len(evidence.board.journal),
        timeouts=sum(len(truth.timeouts) for truth in truths),
        fallen=fallen,
        hit=hit,
        healed_s=times.healed_s,
        finished_s=times.finished_s,
        settled_s=times.settled_s,
    )
