"""Recorded matches mean for ever what they meant, and under their rule book the rules would write them again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.rules.variant import RULE_BOOK
from engine.service import codec
from engine.service.causes import NoCause
from engine.service.export import export, rebuild
from engine.service.verifier import verify_notation
from tests.support import records
from tests.support.records import Record

LOGS = records.logs()
OF_THIS_RULE_BOOK = records.logs(RULE_BOOK)
DEALS = records.played_deals(RULE_BOOK)
ROOT = Path(__file__).parents[2]


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.name.partition('.log')[0].partition('.gouji')[0]}"


@pytest.fixture(scope="module", params=LOGS, ids=named)
def record(request: pytest.FixtureRequest) -> Record:
    return records.read(request.param)


def test_every_state_of_a_recorded_match_is_what_it_was(record: Record) -> None:
    whole = list(records.fingerprints(record.events))

    differs = [
        version for version, (now, then) in enumerate(zip(whole, record.short, strict=True), 1) if now[:8] != then
    ]
    assert differs == []
    assert records.digest_of(whole) == record.digest


def test_every_stored_event_is_stored_the_same_today(record: Record) -> None:
    present = [stored for stored in record.events if stored.schema == codec.SCHEMA]

    assert [codec.encode(event).payload for event in records.decoded(present)] == [one.payload for one in present]


@pytest.mark.parametrize("path", OF_THIS_RULE_BOOK, ids=named)
def test_every_command_of_a_recorded_match_is_decided_the_same_again(path: Path) -> None:
    events = records.read(path).events

    assert records.decided_again(records.decoded(events)) == rebuild(events)


@pytest.mark.parametrize("path", OF_THIS_RULE_BOOK, ids=named)
def test_a_decision_that_differs_is_noticed(path: Path) -> None:
    events = list(records.decoded(records.read(path).events))
    last_pass = max(at for at, event in enumerate(events) if codec.name_of(event) == "passed")
    del events[last_pass]

    with pytest.raises((records.DecidedOtherwise, NoCause)):
        records.decided_again(events)


@pytest.mark.parametrize("path", DEALS, ids=named)
def test_a_recorded_played_deal_is_true(path: Path) -> None:
    assert verify_notation(records.read_text(path)) == []


@pytest.mark.parametrize("path", DEALS, ids=named)
def test_a_recorded_deal_is_written_the_same_today(path: Path) -> None:
    log = records.read(path.with_name(path.name.replace(".gouji.", ".log.")))

    assert export(log.events, records.RECORDED_DEAL) == records.read_text(path)


def test_every_variant_is_recorded_under_this_rule_book() -> None:
    recorded = {named(path) for path in OF_THIS_RULE_BOOK}

    assert recorded == set(map(named, DEALS))
    assert recorded == {f"{RULE_BOOK}/{key}" for key in records.matches()}


BEFALLS = {"timed_out", "points_docked", "disqualified", "seat_substituted", "deadline_extended", "deal_called"}


@pytest.mark.parametrize("path", OF_THIS_RULE_BOOK, ids=named)
def test_a_record_holds_a_whole_table_and_what_may_befall_it(path: Path) -> None:
    types = [stored.type for stored in records.read(path).events]

    assert types[0] == "table_opened"
    if "revolution" in path.name:
        assert {"deal_voided", "revolted", "table_closed"} <= set(types)
    else:
        assert (types.count("deal_ended"), types[-1]) == (2, "match_finished")
        assert set(types) >= BEFALLS


def test_no_process_sees_another_state() -> None:
    replays = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.records", "replay"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "1", "random")
    ]
    said = [replay.communicate(timeout=100)[0] for replay in replays]

    assert all(replay.returncode == 0 for replay in replays)
    assert said[0].count("\n") == len(OF_THIS_RULE_BOOK)
    assert len(set(said)) == 1
