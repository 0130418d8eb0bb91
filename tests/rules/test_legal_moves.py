"""The complete list of a seat's actions, as a client is sent it (R14.9)."""

from __future__ import annotations

from engine import rules
from engine.rules.cases import Run
from engine.rules.legal_moves import MOST, Action, LegalMove, LegalMoves, legal_moves
from engine.rules.notation import read_cases
from engine.rules.options import ActionKind


def after(text: str) -> rules.Deal:
    run = Run(read_cases(text)[0])
    assert not list(run.failures())
    return run.deal


def cards(listed: LegalMoves, kind: ActionKind) -> list[str]:
    return [move.action.cards for move in listed.moves if move.action.kind is kind]


def test_every_answer_to_a_set_is_listed_sets_first_and_smallest_first() -> None:
    deal = after("case x\nvariant qingdao-charter advice=off\nhand 0 66J\nhand 1 7889\nlead 0\n---\n0 66\n")

    assert legal_moves(deal, 1).moves == (
        LegalMove(Action(ActionKind.LAY, "88")),
        LegalMove(Action(ActionKind.PASS)),
    )


def test_who_is_not_asked_has_no_moves() -> None:
    deal = after("case x\nvariant qingdao-charter advice=off\nhand 0 66J\nlead 0\n---\n0 66\n")

    assert legal_moves(deal, 4) == LegalMoves()


def test_a_bluffing_burners_failing_leads_are_marked() -> None:
    deal = after(
        "case x\nvariant qingdao-charter burn_check=bluff\nhand 0 QQQ3\nhand 1 KKKs57\nlead 0\n---\n"
        "0 QQQ\n1 burn KKK\n* decline\n* decline\n4 cover\n"
    )

    marked = {move.action.cards: move.fails for move in legal_moves(deal, 1).moves if move.action.cards}

    assert marked == {"5": True, "7": True, "s": False, "s5": False, "s7": False}


def test_every_covering_set_of_a_burn_is_listed() -> None:
    deal = after("case x\nhand 0 QQQ3\nhand 1 KKKsAAA5\nlead 0\n---\n0 QQQ\n")

    listed = legal_moves(deal, 1)

    assert cards(listed, ActionKind.BURN) == ["KKK", "AAA"]
    assert Action(ActionKind.DECLINE) in {move.action for move in listed.moves}


def test_a_return_is_listed_by_ranks_the_payer_holds_first_and_lowest_first() -> None:
    deal = after(
        "case x\nvariant shandong\nhand 0 4559T\nhand 1 bb5TT\ndebt 1 0 finish 2\nfrom tribute\n---\n= phase tribute\n"
    )

    assert cards(legal_moves(deal, 0), ActionKind.RETURN) == ["55", "T5"]


def test_every_choice_among_the_ranks_on_offer_may_be_discarded() -> None:
    deal = after(
        "case x\nvariant qingdao-charter discard=(3,4)\nhand 0 345\nfrom discard\nlead 0\n---\n= phase discard\n"
    )

    listed = [move.action for move in legal_moves(deal, 0).moves]

    assert listed == [
        Action(ActionKind.DISCARD, ranks="3"),
        Action(ActionKind.DISCARD, ranks="4"),
        Action(ActionKind.DISCARD, ranks="34"),
        Action(ActionKind.KEEP),
    ]


def test_the_largest_hand_is_listed_whole() -> None:
    deal = after(
        "case x\nvariant qingdao-charter advice=off\nhand 0 456789TJQKA666bbbbssss22222222222222\nlead 0\n---\n"
    )

    listed = legal_moves(deal, 0)

    assert len(listed.moves) == 5_624 < MOST
    assert not listed.truncated


def test_a_list_that_is_cut_says_so() -> None:
    deal = after("case x\nvariant qingdao-charter advice=off\nhand 0 45\nlead 0\n---\n")
    whole = legal_moves(deal, 0)

    cut = legal_moves(deal, 0, most=1)

    assert len(whole.moves) == 2
    assert not whole.truncated
    assert legal_moves(deal, 0, most=2) == whole
    assert cut.moves == whole.moves[:1]
    assert cut.truncated
