from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from services.bots import pauses
from services.bots.faults import Stop, TryAgain
from services.bots.matchmaking_client import Ticket
from services.bots.mind import choose
from services.bots.player import play_match
from services.bots.queue import find_table
from services.bots.sight import Answer, Choice, News, Option, Received, Sight

TURN = Sight(
    version=7,
    phase="PLAYING",
    seat=0,
    is_ready=False,
    may_contribute=False,
    hand="bs2A" + "9" * 12,
    options=(),
    owner=None,
    deal=1,
    points=(0,) * 6,
)
OVER = replace(TURN, version=99, phase="FINISHED")
WAITING = replace(TURN, phase="BETWEEN_DEALS")


class Never(random.Random):
    """Chance that never smiles."""

    def random(self) -> float:
        return 1.0


class Always(random.Random):
    """Chance that always smiles."""

    def random(self) -> float:
        return 0.0


def offered(*options: Option, owner: int | None = None) -> Sight:
    return replace(TURN, options=options, owner=owner)


@pytest.mark.parametrize(
    ("hints", "cheapest"),
    [
        (("9", "99", "4"), "4"),
        (("4", "44"), "44"),
        (("s9", "Q"), "Q"),
        (("29", "s9"), "29"),
        (("2", "AA"), "AA"),
    ],
)
def test_a_lead_is_the_lowest_rank_without_wild_cards_and_the_most_of_it(hints: tuple[str, ...], cheapest: str) -> None:
    assert choose(offered(Option("LAY", hints)), Never()) == Choice("LAY", cards=cheapest)


def test_an_enemys_set_is_beaten_when_it_costs_nothing_wild() -> None:
    sight = offered(Option("LAY", ("s9", "TT")), Option("PASS"), owner=1)

    assert choose(sight, Never()) == Choice("LAY", cards="TT")


def test_jokers_and_twos_are_kept() -> None:
    assert choose(offered(Option("LAY", ("sT",)), Option("PASS"), owner=1), Never()) == Choice("PASS")


def test_a_teammates_set_is_left_alone() -> None:
    assert choose(offered(Option("LAY", ("TT",)), Option("PASS"), owner=2), Never()) == Choice("PASS")


def test_the_last_cards_go_even_over_a_teammate() -> None:
    sight = replace(offered(Option("LAY", ("TT",)), Option("PASS"), owner=2), hand="TSTH")

    assert choose(sight, Never()) == Choice("LAY", cards="TT")


@pytest.mark.parametrize(
    ("options", "choice"),
    [
        ((Option("BURN", ("sTT",)), Option("DECLINE")), "DECLINE"),
        ((Option("REVOLT"), Option("STAY")), "STAY"),
        ((Option("DECLARE"), Option("SILENT")), "SILENT"),
        ((Option("AGREE"), Option("REFUSE")), "REFUSE"),
        ((Option("COVER"), Option("YIELD")), "COVER"),
    ],
)
def test_a_window_is_answered_with_no(options: Sequence[Option], choice: str) -> None:
    assert choose(offered(*options), Never()) == Choice(choice)


def test_sometimes_a_set_is_burned() -> None:
    sight = offered(Option("BURN", ("sTT",)), Option("DECLINE"))

    assert choose(sight, Always()) == Choice("BURN", cards="sTT")


def test_what_need_not_be_answered_is_not() -> None:
    assert choose(offered(Option("CONSULT", seats=(2,)), Option("ASK", seats=(1,)), Option("SWAP")), Always()) is None


def test_what_was_refused_is_not_tried_again() -> None:
    sight = offered(Option("LAY", ("4", "5")))

    assert choose(sight, Never(), {Choice("LAY", cards="4")}) == Choice("LAY", cards="5")
    assert choose(sight, Never(), {Choice("LAY", cards="4"), Choice("LAY", cards="5")}) is None


Script = Sequence[Received | Exception | str]
"""What a stream brings; a text stands for the answer to the last command: `accepted`, or a reason of refusal."""


@dataclass
class ScriptedLine:
    script: deque[Received | Exception | str]
    sent: list[tuple[str, Choice | str]]

    async def ready(self, command_id: str, contribution: str) -> None:
        self.sent.append((command_id, contribution))

    async def act(self, command_id: str, seen_version: int, choice: Choice) -> None:
        del seen_version
        self.sent.append((command_id, choice))

    async def receive(self) -> Received | None:
        if not self.script:
            return None
        match self.script.popleft():
            case Exception() as fault:
                raise fault
            case str() as outcome:
                return self._answered(outcome)
            case frame:
                return frame

    def _answered(self, outcome: str) -> Answer:
        command_id = self.sent[-1][0]
        if outcome.isdigit():
            return Answer(command_id, accepted_at=int(outcome))
        if outcome.startswith("fault "):
            return Answer(command_id, fault=outcome.removeprefix("fault "))
        return Answer(command_id, refused=outcome)

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass
class ScriptedTable:
    scripts: deque[Script]
    seats: deque[Answer | Exception] = field(default_factory=deque)
    sent: list[tuple[str, Choice | str]] = field(default_factory=list)
    joined_after: list[int] = field(default_factory=list)

    async def take_seat(self, table_id: str, command_id: str, seat: int) -> Answer:
        del table_id, seat
        answer = self.seats.popleft()
        if isinstance(answer, Exception):
            raise answer
        return replace(answer, command_id=command_id)

    async def play(self, table_id: str, after_version: int) -> ScriptedLine:
        del table_id
        self.joined_after.append(after_version)
        return ScriptedLine(deque(self.scripts.popleft()), self.sent)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "FIRST_S", 0.001)


def seen(sight: Sight) -> News:
    return News(sight.version, sight)


async def played(*scripts: Script) -> ScriptedTable:
    table = ScriptedTable(deque(scripts))
    async with asyncio.timeout(2):
        assert await play_match(table, "table", seed=1) == OVER
    return table


LEAD = offered(Option("LAY", ("4",)))


async def test_a_player_acts_once_on_what_it_sees() -> None:
    table = await played([seen(LEAD), News(7), "8", seen(replace(TURN, version=8)), seen(OVER)])

    assert [choice for _, choice in table.sent] == [Choice("LAY", cards="4")]


async def test_an_unanswered_command_is_sent_again_under_the_same_id_from_the_last_version() -> None:
    table = await played([seen(LEAD), TryAgain("broken")], [TryAgain("again")], ["8", seen(OVER)])

    assert len(table.sent) == 3
    assert len(set(table.sent)) == 1
    assert table.joined_after == [0, 7, 7]


async def test_a_fault_that_passes_is_waited_out_under_the_same_id() -> None:
    table = await played([seen(LEAD), "fault UNAVAILABLE", "fault RATE_LIMITED", "8", seen(OVER)])

    assert len(table.sent) == 3
    assert len(set(table.sent)) == 1


async def test_a_fault_that_stays_leads_to_the_next_best_choice() -> None:
    two = offered(Option("LAY", ("4", "5")))
    table = await played([seen(two), "fault MALFORMED_REQUEST", "8", seen(OVER)])

    assert [choice for _, choice in table.sent] == [Choice("LAY", cards="4"), Choice("LAY", cards="5")]


async def test_a_refusal_leads_to_the_next_best_choice() -> None:
    sight = offered(Option("LAY", ("TT",)), Option("PASS"), owner=1)
    table = await played([seen(sight), "NOT_HIGHER", "8", seen(OVER)])

    assert [choice for _, choice in table.sent] == [Choice("LAY", cards="TT"), Choice("PASS")]


async def test_an_old_view_is_not_acted_on_after_an_answer() -> None:
    table = await played([seen(LEAD), "9", seen(replace(LEAD, version=8)), seen(replace(TURN, version=9)), seen(OVER)])

    assert len(table.sent) == 1


async def test_a_player_of_a_log_that_went_back_begins_anew() -> None:
    table = await played(
        [seen(LEAD), "9", TryAgain("WENT_BACK")], [seen(replace(LEAD, version=5)), "6", News(6), seen(OVER)]
    )

    assert table.joined_after == [0, 0]
    assert len(table.sent) == 2


async def test_a_view_behind_the_events_is_not_acted_on() -> None:
    two = offered(Option("LAY", ("4", "5")))
    table = await played([seen(two), News(9), "NOT_YOUR_TURN", seen(OVER)])

    assert len(table.sent) == 1


async def test_a_player_gets_ready_once_the_house_has_committed_and_contributes() -> None:
    table = await played(
        [seen(WAITING), seen(replace(WAITING, may_contribute=True)), "8", seen(replace(TURN, version=8)), seen(OVER)]
    )

    [(_, contribution)] = table.sent
    assert isinstance(contribution, str)
    assert len(contribution) == 64


async def test_a_refused_readiness_waits_for_a_change() -> None:
    committed = replace(WAITING, may_contribute=True)
    table = await played(
        [seen(committed), "NOT_COMMITTED", seen(committed), seen(replace(committed, version=8)), "9", seen(OVER)]
    )

    assert len(table.sent) == 2


async def test_a_player_that_is_not_wanted_stops() -> None:
    table = ScriptedTable(deque([[Stop("SUPERSEDED")]]))

    with pytest.raises(Stop, match="SUPERSEDED"):
        await play_match(table, "table")


async def test_a_seat_is_asked_for_until_there_is_an_answer() -> None:
    table = ScriptedTable(deque([[seen(OVER)]]), deque([TryAgain("no engine"), Answer("", accepted_at=2)]))

    assert await play_match(table, "table", seat=3) == OVER


async def test_a_seat_that_is_taken_ends_the_try() -> None:
    table = ScriptedTable(deque(), deque([Answer("", refused="SEAT_TAKEN")]))

    with pytest.raises(Stop, match="SEAT_TAKEN"):
        await play_match(table, "table", seat=3)


@dataclass
class ScriptedOffice:
    watches: deque[Sequence[Ticket | Exception]]
    commands: list[str] = field(default_factory=list)

    async def queue(self, command_id: str, variant_key: str, deals: int) -> Ticket:
        del variant_key, deals
        self.commands.append(command_id)
        return Ticket("ticket", "WAITING", "", 0)

    async def watch(self, ticket_id: str) -> AsyncIterator[Ticket]:
        assert ticket_id == "ticket"
        for state in self.watches.popleft():
            if isinstance(state, Exception):
                raise state
            yield state


async def test_a_ticket_is_followed_over_broken_streams_and_asked_for_under_one_id() -> None:
    matched = Ticket("ticket", "MATCHED", "table", 4)
    waiting = Ticket("ticket", "WAITING", "", 0)
    office = ScriptedOffice(deque([[waiting], [TryAgain("broken")], [waiting, matched]]))

    assert await find_table(office, "barracks", 1) == matched
    assert len(office.commands) == 3
    assert len(set(office.commands)) == 1


async def test_a_proposed_ticket_is_followed_until_its_table_is_open() -> None:
    states = ("WAITING", "PROPOSED", "WAITING", "PROPOSED")
    matched = Ticket("ticket", "MATCHED", "table", 4)
    office = ScriptedOffice(deque([[*(Ticket("ticket", state, "", 0) for state in states), matched]]))

    assert await find_table(office, "barracks", 1) == matched
    assert len(office.commands) == 1


async def test_a_ticket_that_expires_is_told() -> None:
    office = ScriptedOffice(deque([[Ticket("ticket", "EXPIRED", "", 0)]]))

    with pytest.raises(Stop, match="EXPIRED"):
        await find_table(office, "barracks", 1)
