"""Whatever players and house do to a table, in whatever order, its log stays a log (rules.md R12, R14)."""

from random import Random

import pytest

from engine import match as table
from engine.match import Command, Seating
from engine.rules.commands import Agree, Disqualify, Dock, Forfeit, JudgeLast, Swap, TimeOut, Warn
from engine.rules.variant import VARIANTS, resolve
from engine.service.export import export, rebuild
from engine.service.verifier import verify_notation
from tests.support import records
from tests.support.players import play_some
from tests.support.tables import PLAYERS, LoggedTable

FEW_CARDS = "{5:16,6:16,7:16,8:16,9:16,T:16}"
PEOPLE = (*PLAYERS, "gus", "hal", "ida")


def a_meddled_match(number: int) -> LoggedTable:
    """A match in which everybody does whatever comes to mind, now and then something that makes sense."""
    chance = Random(number)
    key = chance.choice(list(VARIANTS))
    base = {"swap_last": "yes", "match_deals": str(chance.choice((0, 3))), "match_points": "10"}
    variant = resolve(key, base | ({} if key == "jinan" else {"deck": FEW_CARDS}))
    made = LoggedTable(f"meddled {number}")
    made.accepts(table.OpenTable(variant, chance.choice(list(Seating)), ranked=chance.random() < 0.2))
    for step in range(150):
        if table.is_over(made.match):
            break
        if chance.random() < 0.5:
            made.does(meddling(chance), "admin")
        elif made.match.phase is table.Phase.PLAYING:
            play_some(made, f"{number} {step}", chance.randrange(40))
        else:
            a_seat_is_readied(made, chance)
    return made


def a_seat_is_readied(made: LoggedTable, chance: Random) -> None:
    """The first seat that keeps the next deal waiting is taken, or its player is ready."""
    for seat, player in enumerate(made.match.players):
        if player == table.NOBODY:
            made.does(table.Substitute(seat, chance.choice(PEOPLE)), "admin")
        elif not made.match.ready[seat]:
            made.does(table.SetReady(player, ready=True, contribution=f"{chance.randrange(256):02x}"), player)
        else:
            continue
        return


def meddling(chance: Random) -> Command:
    seat, somebody = chance.randrange(6), chance.choice(PEOPLE)
    draw = tuple(chance.sample(range(6), 6))
    choices: list[Command] = [
        table.TakeSeat(somebody, seat, draw),
        table.LeaveSeat(somebody),
        table.SetReady(somebody, chance.random() < 0.7, "ab"),
        table.Substitute(seat, chance.choice((somebody, table.NOBODY))),
        table.CallDeal(),
        table.ExtendDeadline(1_790_000_000_000 + chance.randrange(10**6)),
        table.Play(somebody, Swap(0)),
        table.Play(somebody, Agree(0)),
        Disqualify(seat, "signals"),
        Warn(seat, "a word; or two"),
        Dock(seat, chance.randrange(4), ""),
        Forfeit(seat, "#"),
        JudgeLast(seat, "stalls"),
        TimeOut(seat),
    ]
    return table.CloseTable("enough") if chance.random() < 0.004 else chance.choice(choices)


@pytest.mark.parametrize("number", range(40))
def test_a_meddled_match_is_rebuilt_decided_again_and_proved(number: int) -> None:
    made = a_meddled_match(number)
    starts = [at for at, stored in enumerate(made.log) if stored.type == "deal_started"]

    assert rebuild(made.log) == made.match
    assert all(rebuild(made.log[start:]) == made.match for start in starts)
    assert records.decided_again(records.decoded(made.log)) == made.match
    assert table.is_over(made.match) or table.due(made.match)
    ended = len(starts) - (made.match.phase is table.Phase.PLAYING)
    assert [verify_notation(export(made.log, deal)) for deal in range(1, ended + 1)] == [[]] * ended
