"""A run: an installation, players, blows; then healing, the end of all matches, and the evidence before the checker.

Law: the order of things and nothing else. Times are in seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from engine.runtime.bus import Message, MessageHandler
from engine.runtime.bus_nats import NatsBus, NatsOptions
from tests.chaos.harness import gathering
from tests.chaos.harness.blows import Havoc
from tests.chaos.harness.checker import Violation, violations
from tests.chaos.harness.crews import Club
from tests.chaos.harness.evidence import Evidence, Kind, Witnessed
from tests.chaos.harness.havoc import Blow, Fault, blows
from tests.chaos.harness.site import ENGINES, Site

FINISH_S = 120.0
"""How long matches may go on after the healing; tables that have not ended by then must at least have moved."""
SETTLE_S = 90.0

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for. `nodes`: of NATS, one or three. `blows`: these instead of drawn ones. `engine_module`: another engine than the house's own, to see that its faults are caught."""

    seconds: float
    tables: int
    seed: int
    faults: Sequence[Fault] = tuple(Fault)
    finish_s: float = FINISH_S
    settle_s: float = SETTLE_S
    engine_module: str = ""
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
    engine = plan.engine_module or ("tests.chaos.harness.engine" if Fault.CLOCK in plan.faults else "")
    async with Site(folder, engine, nodes=plan.nodes) as site:
        tell("starting")
        await site.start()
        club, witnessed = Club(site, plan.seed), list[Witnessed]()
        bus = await NatsBus.connect(NatsOptions(tuple(site.bus_url.split(",")), name="chaos"))
        await bus.subscribe("gouji.witness.*", _hear(witnessed))
        havoc = Havoc(site)
        try:
            times = await _live(plan, site, club, havoc, tell)
            evidence = await _evidence(site, club, witnessed, times)
        finally:
            await club.leave()
            await bus.close()
    tell("judging")
    report = _report(evidence, times, dict(havoc.fallen), dict(havoc.hit))
    return replace(report, ended=dict(site.ended), bothers=dict(club.bothers), seconds=time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class _Times:
    healed: Mapping[UUID, int]
    settled: bool
    healed_s: float
    finished_s: float
    settled_s: float


async def _live(plan: Plan, site: Site, club: Club, havoc: Havoc, tell: Tell) -> _Times:
    """Play through everything to the end."""
    club.come(plan.tables)
    progress = asyncio.create_task(_progress(club, havoc, tell))
    try:
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


async def _evidence(site: Site, club: Club, witnessed: Sequence[Witnessed], times: _Times) -> Evidence:
    """Stop the players, then the engines, so that nothing moves any more; let the rest take what is there; look."""
    waiting = club.waiting
    await club.leave()
    ended_at_ms = time.time_ns() // 1_000_000
    for engine in ENGINES:
        await site.end(engine)
    settled = await gathering.settle(site.dsn, site.bus_url, SETTLE_S, with_engines=False)
    seen = gathering.with_audiences(club.book.seen)
    return Evidence(
        truths=await gathering.truths(site.dsn, seen),
        said=club.book.said,
        seen=seen,
        witnessed=witnessed,
        bus=await gathering.facts(site.bus_url),
        board=await gathering.board(site.dsn, site.bus_url),
        healed=times.healed,
        ended_at_ms=ended_at_ms,
        pending=gathering.pending(site.dsn),
        settled=settled and times.settled,
        turned_away=club.book.turned_away,
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


def _hear(witnessed: list[Witnessed]) -> MessageHandler:
    async def hear(message: Message) -> None:
        version, state = message.payload.decode().split()
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
