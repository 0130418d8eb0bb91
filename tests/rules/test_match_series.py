"""What one deal of a match leaves to the next: points, places, cutters, debts, seats that changed hands, void deals."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import TypeVar

import pytest

from engine import match as table
from engine.match import LeaveSeat, Phase, Substitute, TakeSeat
from engine.match import events as at_table
from engine.match.events import DealStarted
from engine.rules import events as fact
from engine.rules.cards import ACE, SMALL, TWO, rank_of
from engine.rules.commands import Agree, Disqualify, Dock, Revolt, Stay, Swap
from engine.rules.events import Debt
from engine.rules.scoring import is_sweep
from engine.rules.variant import DebtKind, NextLead, Variant, resolve
from engine.service import codec
from engine.service.export import export, rebuild
from engine.service.verifier import verify_notation
from tests.support.players import play_out
from tests.support.tables import LoggedTable

SMALL_DECK = {"deck": "{5:16,6:16,7:16,8:16,9:16,T:16}", "revolution": "no"}
PLAIN = resolve("qingdao-charter", SMALL_DECK | {"match_deals": "100"})
PAYING = resolve("shandong", SMALL_DECK | {"match_deals": "100", "swap_last": "yes"})
FEW_HIGH_CARDS = resolve("qingdao-charter", {"deck": "{2:16,s:4,3:4}", "tribute": "yes"})
NUMBERS = {ACE: 1, TWO: 2}

Happened = TypeVar("Happened")


def all_of(played: LoggedTable, kind: type[Happened]) -> list[Happened]:
    """Every event of this kind in the log."""
    return list(of_kind(table_events(played), kind))


def of_kind(events: Sequence[table.Event], kind: type[Happened]) -> Iterator[Happened]:
    return (event for event in events if isinstance(event, kind))


def table_events(played: LoggedTable) -> list[table.Event]:
    return [codec.decode(stored.type, stored.schema, stored.payload) for stored in played.log]


def events_of_deal(played: LoggedTable, deal: int) -> list[table.Event]:
    """What happened from the start of a deal to the start of the next."""
    events = table_events(played)
    starts = [at for at, event in enumerate(events) if isinstance(event, DealStarted)]
    return events[starts[deal - 1] : (*starts[deal:], len(events))[0]]


def the_cards_dealt(played: LoggedTable) -> fact.CardsDealt:
    return all_of(played, fact.CardsDealt)[-1]


def the_start(played: LoggedTable) -> DealStarted:
    assert played.match.started is not None
    return played.match.started


def one_deal(variant: Variant, number: int) -> LoggedTable:
    played = LoggedTable.seated(variant, chance=f"series {number}")
    play_out(played, number)
    return played


def a_deal_where(holds: Callable[[LoggedTable], bool], variant: Variant = PLAIN) -> LoggedTable:
    """The first of some careless deals that ended like this."""
    return next(played for number in islice(count(), 60) if holds(played := one_deal(variant, number)))


def an_ordinary_deal(played: LoggedTable) -> bool:
    return not is_sweep(played.match.places)


def fifth_and_last_are_mates(played: LoggedTable) -> bool:
    fifth, last = played.match.places[4:]
    return fifth % 2 == last % 2 and an_ordinary_deal(played)


def the_next_deal(played: LoggedTable) -> LoggedTable:
    played.everybody_ready()
    assert played.match.phase is Phase.PLAYING
    return played


# The end of a match


def test_points_alone_may_end_a_match() -> None:
    played = LoggedTable.seated(replace(PLAIN, match_deals=0, match_points=14))
    totals: list[int] = []

    while not table.is_over(played.match):
        play_out(played, played.match.deal_number)
        totals.append(max(played.match.even_points, played.match.odd_points))
        if not table.is_over(played.match):
            played.everybody_ready()

    assert all_of(played, at_table.MatchFinished)
    assert len(totals) > 1
    assert totals[-1] >= 14 > totals[-2]


def test_the_points_end_a_match_before_its_deals_do() -> None:
    played = LoggedTable.seated(replace(PLAIN, match_deals=50, match_points=1))

    play_out(played, "enough")

    assert played.match.phase is Phase.FINISHED
    assert all_of(played, at_table.MatchFinished)[0].deals == played.match.counted == 1


def test_points_taken_are_in_the_final_standing_and_never_in_the_teams() -> None:
    played = LoggedTable.seated(replace(PLAIN, match_deals=2))
    played.accepts(Dock(2, 3, "signals"))
    play_out(played, "first")
    taken = Counter({2: 3})
    played.accepts(Dock(5, 4, "signals again"))
    the_next_deal(played)
    played.accepts(Dock(2, 100, "and again"))
    play_out(played, "second")
    for docked in all_of(played, fact.PointsDocked):
        taken[docked.seat] += docked.points * (docked.reason.startswith("a long talk"))
    taken.update({5: 4, 2: 100})

    (finished,) = all_of(played, at_table.MatchFinished)

    ended = all_of(played, fact.DealEnded)
    even, odd = sum(one.even_points for one in ended), sum(one.odd_points for one in ended)
    assert (finished.even_points, finished.odd_points) == (even, odd)
    assert finished.points == tuple((even, odd)[seat % 2] - taken[seat] for seat in range(6))


def test_points_taken_do_not_keep_a_match_from_ending() -> None:
    played = LoggedTable.seated(replace(PLAIN, match_deals=50, match_points=1))
    for seat in range(6):
        played.accepts(Dock(seat, 50, "everybody"))

    play_out(played, "enough")

    assert played.match.phase is Phase.FINISHED


# Cuts


def expected_cut(deck: Sequence[int], seat: int) -> tuple[int, int]:
    """R1.3: jokers void the cutter's right; the first drawer is counted from the cutter with the card's number."""
    step, rank = next((step, rank_of(one)) for step, one in enumerate(deck) if rank_of(one) < SMALL)
    cutter = (seat + step) % 6
    return cutter, (cutter + NUMBERS.get(rank, rank + 3) - 1) % 6


def test_the_first_deal_is_cut_by_seat_zero() -> None:
    played = LoggedTable.seated(PLAIN)

    dealt = the_cards_dealt(played)

    assert (dealt.cutter, dealt.first_drawer) == expected_cut(the_start(played).deck or (), 0)


def test_an_ordinary_deal_is_not_cut_and_led_by_the_last() -> None:
    played = a_deal_where(an_ordinary_deal)
    cutter, last = played.match.cutter, played.match.places[5]

    played.accepts(Substitute(1, "gus"))
    the_next_deal(played)

    dealt = the_cards_dealt(played)
    assert the_start(played).changed == (1,)
    assert (dealt.cutter, dealt.first_drawer, dealt.leader) == (cutter, last, last)


def test_two_seats_that_changed_hands_have_the_next_deal_cut_again() -> None:
    played = a_deal_where(an_ordinary_deal)
    cutter = played.match.cutter
    assert cutter is not None

    played.accepts(Substitute(1, "gus"))
    played.accepts(Substitute(4, "hal"))
    the_next_deal(played)

    dealt = the_cards_dealt(played)
    assert the_start(played).changed == (1, 4)
    assert (dealt.cutter, dealt.first_drawer) == expected_cut(the_start(played).deck or (), (cutter + 1) % 6)
    assert played.match.cutter == dealt.cutter


def test_a_sweep_has_the_next_deal_cut_again() -> None:
    played = a_deal_where(lambda one: is_sweep(one.match.places))
    cutter = played.match.cutter
    assert cutter is not None

    the_next_deal(played)

    dealt = the_cards_dealt(played)
    assert (dealt.cutter, dealt.first_drawer) == expected_cut(the_start(played).deck or (), (cutter + 1) % 6)


def test_players_who_change_places_have_changed_hands() -> None:
    played = a_deal_where(an_ordinary_deal)

    played.accepts(LeaveSeat("ann"))
    played.accepts(LeaveSeat("ben"))
    played.accepts(TakeSeat("ann", 1))
    played.accepts(TakeSeat("ben", 0))
    the_next_deal(played)

    assert the_start(played).changed == (0, 1)


def test_a_seat_that_changed_hands_twice_is_one_seat() -> None:
    played = a_deal_where(an_ordinary_deal)

    played.accepts(Substitute(3, "gus"))
    played.accepts(Substitute(3, "hal"))
    the_next_deal(played)

    assert the_start(played).changed == (3,)


def test_who_sits_down_in_a_running_deal_has_changed_hands_in_the_next() -> None:
    played = LoggedTable.seated(PLAIN)
    played.accepts(Substitute(0, "gus"))
    play_out(played, "with gus")
    played.accepts(Substitute(5, "hal"))
    the_next_deal(played)

    assert the_start(played).changed == (0, 5)

    play_out(played, "with hal")
    the_next_deal(played)

    assert the_start(played).changed == ()


def test_where_the_cut_rotates_each_deal_is_cut_by_the_seat_after_the_last_cutter() -> None:
    played = LoggedTable.seated(replace(PLAIN, next_lead=NextLead.ROTATE))
    for deal in range(3):
        cutter = played.match.cutter
        play_out(played, deal)
        the_next_deal(played)

        dealt = the_cards_dealt(played)
        assert cutter is not None
        assert (dealt.cutter, dealt.first_drawer) == expected_cut(the_start(played).deck or (), (cutter + 1) % 6)
        assert played.match.cutter == dealt.cutter


# Debts


def settled(played: LoggedTable, deal: int) -> Counter[tuple[int, int, DebtKind]]:
    """How much was paid or lapsed in a deal, by payer, payee and kind."""
    sums: Counter[tuple[int, int, DebtKind]] = Counter()
    events = events_of_deal(played, deal)
    for done in events:
        if not isinstance(done, fact.TributePaid | fact.DebtLapsed):
            continue
        sums[done.payer, done.payee, done.kind] += done.amount
    return sums


def owed(debts: Sequence[Debt]) -> Counter[tuple[int, int, DebtKind]]:
    sums: Counter[tuple[int, int, DebtKind]] = Counter()
    for debt in debts:
        sums[debt.payer, debt.payee, debt.kind] += debt.amount
    return sums


@pytest.mark.parametrize("number", range(4))
def test_what_a_deal_leaves_is_settled_in_the_next(number: int) -> None:
    played = one_deal(PAYING, number)
    debts = played.match.debts

    the_next_deal(played)
    play_out(played, number)

    assert debts
    assert the_start(played).debts == debts
    assert settled(played, 2) == owed(debts)


def test_who_takes_over_a_seat_takes_over_its_debts() -> None:
    played = a_deal_where(lambda one: any(debt.payer == one.match.places[5] for debt in one.match.debts), PAYING)
    payer = played.match.places[5]
    debts = played.match.debts

    played.accepts(Disqualify(payer, "signals"))
    played.accepts(Substitute(payer, "gus"))
    the_next_deal(played)

    assert the_start(played).players[payer] == "gus"
    assert the_start(played).debts == debts
    play_out(played, "gus pays")
    assert settled(played, 2) == owed(debts)
    assert verify_notation(export(played.log, 2)) == []


def test_who_plays_on_for_one_disqualified_leaves_and_takes_what_the_seat_does() -> None:
    played = LoggedTable.seated(PAYING)
    played.time_passes()
    played.accepts(Dock(4, 2, "signals"))
    played.accepts(Disqualify(4, "signals again"))
    played.time_passes()
    played.accepts(Substitute(4, "gus"))

    play_out(played, "gus plays on")

    assert played.match.players[4] == "gus"
    taken = sum(docked.points for docked in all_of(played, fact.PointsDocked) if docked.seat == 4)
    assert played.match.points[4] == played.match.even_points - taken
    the_next_deal(played)
    assert the_start(played).barred == ("eve",)
    assert verify_notation(export(played.log, 1)) == []


def test_nobody_is_disqualified_from_an_empty_seat() -> None:
    played = LoggedTable.seated(PLAIN)
    played.accepts(Disqualify(4, "signals"))

    assert played.refuses(Disqualify(4, "signals")) == "NOT_SEATED"
    assert played.match.barred == ("eve",)


def test_a_deal_goes_on_without_a_disqualified_player_and_then_waits_for_another() -> None:
    played = LoggedTable.seated(PLAIN)
    played.accepts(Disqualify(4, "signals"))

    play_out(played, "five and the clock")

    assert played.match.phase is Phase.BETWEEN_DEALS
    for player in filter(None, played.match.players):
        played.accepts(table.SetReady(player, ready=True))
    assert played.match.phase is Phase.BETWEEN_DEALS
    assert table.due(played.match) == (table.CloseTable("seat_empty"),)
    played.accepts(Substitute(4, "gus"))
    played.accepts(table.SetReady("gus", ready=True))
    assert the_start(played).changed == (4,)


# Swaps


def swapped(variant: Variant) -> tuple[LoggedTable, tuple[Debt, ...], tuple[int, ...]]:
    """A deal after which fifth and last have changed places, with the debts and places before."""
    played = a_deal_where(fifth_and_last_are_mates, variant)
    debts, places = played.match.debts, played.match.places
    played.plays(places[4], Swap(places[4]))
    played.plays(places[5], Agree(places[5]))
    assert played.match.places == (*places[:4], places[5], places[4])
    return played, debts, places


def test_a_swap_moves_the_finish_tribute_and_no_other_debt() -> None:
    played, debts, places = swapped(PAYING)
    mover = {places[4]: places[5], places[5]: places[4]}

    expected = {
        debt._replace(payer=mover.get(debt.payer, debt.payer)) if debt.kind is DebtKind.FINISH else debt
        for debt in debts
    }

    assert any(debt.kind is DebtKind.FINISH for debt in debts)
    assert set(played.match.debts) == expected


def test_the_deal_after_a_swap_is_drawn_led_and_paid_by_the_new_last() -> None:
    played, _, places = swapped(PAYING)
    debts = played.match.debts

    the_next_deal(played)
    play_out(played, "after a swap")

    dealt = all_of(played, fact.CardsDealt)[1]
    assert (dealt.first_drawer, dealt.leader) == (places[4], places[4])
    assert settled(played, 2) == owed(debts)
    assert verify_notation(export(played.log, 1)) == verify_notation(export(played.log, 2)) == []


def test_a_swap_is_made_once_and_only_by_these_two() -> None:
    played = a_deal_where(fifth_and_last_are_mates, PAYING)
    *others, fifth, last = played.match.places
    before = played.match.places

    for seat in others:
        played.plays(seat, Swap(seat))
    played.plays(last, Agree(last))
    played.plays(fifth, Swap(fifth))
    played.plays(fifth, Agree(fifth))
    assert played.match.places == before
    played.plays(last, Agree(last))
    played.plays(last, Swap(last))
    played.plays(fifth, Agree(fifth))

    assert played.match.places == (*others, last, fifth)


def test_fifth_and_last_of_two_teams_keep_their_places() -> None:
    played = a_deal_where(lambda one: one.match.places[4] % 2 != one.match.places[5] % 2, PAYING)
    *_, fifth, last = before = played.match.places

    played.plays(fifth, Swap(fifth))
    played.plays(last, Agree(last))

    assert played.match.places == before


def test_a_swap_that_is_agreed_to_when_the_next_deal_is_cut_comes_too_late() -> None:
    played = a_deal_where(fifth_and_last_are_mates, PAYING)
    *_, fifth, last = before = played.match.places
    played.plays(fifth, Swap(fifth))
    the_next_deal(played)

    played.plays(last, Agree(last))

    assert all_of(played, fact.PlacesSwapped) == []
    assert the_start(played).places == before


def test_a_newcomer_may_agree_for_his_seat() -> None:
    played = a_deal_where(fifth_and_last_are_mates, PAYING)
    *_, fifth, last = played.match.places
    played.plays(fifth, Swap(fifth))
    played.accepts(Substitute(last, "gus"))

    played.plays(last, Agree(last))

    assert played.match.places[4:] == (last, fifth)
    assert rebuild(played.log) == played.match


# Void deals


def who_may_revolt(played: LoggedTable) -> list[int]:
    """Seats that may revolt now: all are asked, only they are taken at their word."""
    deal = played.match.deal
    assert deal is not None
    seats = table.waiting(played.match)
    return [
        seat
        for seat in (seats.seats if seats else ())
        if isinstance(table.decide(played.match, table.Play(played.match.players[seat], Revolt(seat))), tuple)
    ]


def made_void(played: LoggedTable) -> bool:
    """Whether everybody who may revolt does, and that makes the deal void."""
    if len(rebels := who_may_revolt(played)) < 2:
        return False
    for seat in range(6):
        played.plays(seat, (Revolt if seat in rebels else Stay)(seat))
    assert played.match.voided
    return True


def paid_and_void(number: int) -> LoggedTable | None:
    """A second deal in which tribute was paid, and which was void then."""
    played = one_deal(FEW_HIGH_CARDS, number)
    the_next_deal(played)
    while played.match.deal is not None and played.match.deal.window is None:
        played.time_passes()
    paid = list(of_kind(events_of_deal(played, 2), fact.TributePaid))
    return played if paid and made_void(played) else None


@pytest.fixture(scope="module")
def void() -> LoggedTable:
    return next(played for number in range(60) if (played := paid_and_void(number)) is not None)


def test_a_void_deal_undoes_the_tribute_and_leaves_the_debts(void: LoggedTable) -> None:
    (voided,) = all_of(void, fact.DealVoided)

    second = events_of_deal(void, 2)
    start = next(of_kind(second, DealStarted))
    assert voided.hands == next(of_kind(second, fact.CardsDealt)).hands
    assert void.match.debts == start.debts != ()
    assert void.match.places == start.places
    assert void.match.points == start.points
    assert verify_notation(export(void.log, 2)) == []


def test_a_void_deal_is_dealt_again_by_the_same_drawer_as_often_as_it_is_void() -> None:
    played = LoggedTable.seated(resolve("qingdao-charter", {"deck": "{2:16,s:4,b:4}"}))
    first = the_cards_dealt(played)

    for _ in range(3):
        assert made_void(played)
        the_next_deal(played)

    assert [one.first_drawer for one in all_of(played, fact.CardsDealt)] == [first.first_drawer] * 4
    assert (played.match.deal_number, played.match.counted) == (4, 0)
    assert played.match.cutter == first.cutter
    starts = [at for at, stored in enumerate(played.log) if stored.type == "deal_started"]
    assert all(rebuild(played.log[at:]) == played.match for at in starts)


def test_the_debts_of_the_deal_before_a_void_one_are_settled_when_it_is_dealt_again(void: LoggedTable) -> None:
    debts = void.match.debts
    drawer, deals = void.match.drawer, void.match.deal_number
    again = LoggedTable("again")
    again.match, again.log = void.match, list(void.log)

    the_next_deal(again)
    play_out(again, "dealt again")

    assert all_of(again, fact.CardsDealt)[-1].first_drawer == drawer
    assert settled(again, deals + 1) == owed(debts)
    assert verify_notation(export(again.log, deals + 1)) == []


def test_what_a_void_deal_does_not_undo(void: LoggedTable) -> None:
    again = LoggedTable("penalties")
    again.match, again.log = void.match, list(void.log)
    before = again.match.points

    again.accepts(Dock(1, 2, "signals"))
    the_next_deal(again)

    assert the_start(again).points[1] == before[1] - 2
    assert verify_notation(export(again.log, 2)) == []
