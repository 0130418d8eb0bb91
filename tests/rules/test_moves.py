"""What a seat is offered: complete lists, hints, and marks on what would fail it (R14.9)."""

from __future__ import annotations

from engine import rules
from engine.rules import moves
from engine.rules.cards import letters
from engine.rules.cases import Run
from engine.rules.notation import read_cases
from engine.rules.options import ActionKind, hints, options
from tests.support.play import fold


def after(text: str) -> rules.Deal:
    run = Run(read_cases(text)[0])
    assert not list(run.failures())
    return run.deal


def laid(deal: rules.Deal, seat: int) -> list[str]:
    return [letters(moves.cards_of_set(one)) for one in moves.sets_to_lay(deal, seat)]


def test_every_set_that_beats_the_table_is_listed_smallest_first() -> None:
    deal = after("case x\nhand 0 66J\nhand 1 78899s2\nlead 0\n---\n0 66\n")

    assert laid(deal, 1) == ["27", "88", "28", "99", "29", "s7", "s8", "s9", "s2"]


def test_a_seat_that_is_not_asked_is_offered_nothing_to_lay() -> None:
    deal = after("case x\nhand 0 66J\nhand 2 77\nlead 0\n---\n0 66\n")

    assert laid(deal, 2) == []
    assert ActionKind.LAY not in {option.kind for option in options(deal, 2)}


def test_a_bluffing_burners_failing_leads_are_listed_and_marked() -> None:
    deal = after(
        "case x\nvariant qingdao-charter burn_check=bluff\nhand 0 QQQ3\nhand 1 KKKs57\nlead 0\n---\n"
        "0 QQQ\n1 burn KKK\n* decline\n* decline\n4 cover\n"
    )
    marked = {letters(moves.cards_of_set(one)): moves.fails(deal, 1, one) for one in moves.sets_to_lay(deal, 1)}

    assert marked == {"5": True, "7": True, "s": False, "s5": False, "s7": False}
    assert options(deal, 1)[0].hints == ("s", "s5", "s7")


def test_hints_keep_ranks_together_and_jokers_for_later() -> None:
    deal = after("case x\nhand 0 6789\nhand 1 TTJQsb\nlead 0\n---\n0 9\n")
    sets = moves.sets_to_lay(deal, 1)

    assert hints(deal, 1, sets) == ("J", "Q", "T", "s", "b")


def test_hints_are_few_even_with_a_full_hand() -> None:
    deal = after("case x\nhand 0 334455667788TTJJQQKKAA2222ssbb\nlead 0\n---\n")

    option = options(deal, 0)[0]

    assert option.kind is ActionKind.LAY
    assert len(option.hints) == moves.HINTS
    assert len(laid(deal, 0)) > 500


def test_who_waits_in_a_window_is_offered_answers_and_nothing_else() -> None:
    deal = after("case x\nhand 0 QQQ3\nhand 1 KKK5\nlead 0\n---\n0 QQQ\n")

    assert [option.kind for option in options(deal, 1)] == [ActionKind.BURN, ActionKind.DECLINE]
    assert [option.kind for option in options(deal, 2)] == [ActionKind.DECLINE]
    assert options(deal, 3) == ()


def test_the_house_stands_in_for_whoever_runs_out_of_time() -> None:
    deal = after("case x\nhand 0 3459\nlead 0\n---\n")

    events = rules.decide(deal, moves.stand_in(deal, 0))

    assert not isinstance(events, rules.Refused)
    assert letters(fold(deal, events).trick.cards) == "3"
