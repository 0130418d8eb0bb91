"""The written language read back: what is not written right names its line, and cards are read as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.rules.cards import NotCards, cards_of, faces_text, letters, parse, parse_faces, size, text
from engine.rules.cases import run_text
from engine.rules.notation import BadNotation, action, read_cases

CASES = Path(__file__).parents[1] / "golden/cases"


def failed_lines(written: str) -> list[int]:
    """The lines that a run of this text complains about."""
    return [failure.line for result in run_text(written) for failure in result.failures]


def only_message(written: str) -> str:
    """The one complaint, without the table that is drawn under it."""
    [message] = [failure.message.splitlines()[0] for result in run_text(written) for failure in result.failures]
    return message


BAD_HEADERS = [
    "hand",
    "hand 0",
    "hand 6 5",
    "hand x 5",
    "hand 0 1",
    "hand 0 sS",
    "lead",
    "lead 9",
    "lead 0 1",
    "lead ٣",
    "out 0",
    "out 0 7",
    "failed 1 x",
    "revolted",
    "revolted 1 2",
    "passed",
    "passed x",
    "opened 7",
    "cut ²",
    "changed q",
    "debt 0 1 burn",
    "debt 0 1 gift 2",
    "debt 0 1 burn x",
    "debt 0 1 burn 1 1",
    "places 0 1",
    "places 0 0 1 2 3 4",
    "from",
    "from nowhere",
    "deck 3X",
    "draws 8",
    "variant",
    "variant nobody",
    "variant qingdao-charter trumps=yes",
    "variant qingdao-charter swap_last",
    "variant qingdao-charter swap_last=maybe",
    "variant qingdao-charter buy=3",
    "variant qingdao-charter deck={3}",
    "variant qingdao-charter place_points=(4,2)",
    "bogus 1",
    "0 3",
    "= turn 0",
]


@pytest.mark.parametrize("statement", BAD_HEADERS)
def test_a_bad_header_statement_names_its_line(statement: str) -> None:
    assert failed_lines(f"# a comment\ncase one\n{statement}\n---\n0 3\n") == [3]


BAD_STATEMENTS = [
    "0",
    "6 5",
    "x 5",
    "0 zz",
    "0 5 5",
    "0 5 !",
    "0 5 ! NOT_A_SET NOT_IN_HAND",
    "! NOT_A_SET",
    "0 ! NOT_A_SET",
    "0 pass now",
    "0 burn",
    "0 buy",
    "0 buy zz",
    "0 buy 3 4",
    "0 discard",
    "0 discard z",
    "0 return",
    "0 consult",
    "0 consult 9",
    "0 suggest 2",
    "0 order",
    "0 order 5 zz",
    "0 ask 1 2",
    "0 dock",
    "0 dock -1",
    "0 dock 99999999999",
    "*",
    "* zz",
    "hand 0 5",
    "=",
    "= luck 0",
    "= turn",
    "= turn 9",
    "= turn 0 1",
    "= window",
    "= window burn x",
    "= table x",
    "= table 0 zz",
    "= may 0",
    "= may not 0",
    "= gouji",
    "= headless 9",
    "= opened x",
    "= hand 0",
    "= hand 0 zz",
    "= count 0 x",
    "= sees 0 1",
    "= sees 0 9 hand",
    "= place 9 1",
    "= places 0 1",
    "= points",
    "= points even",
    "= owes 0 1 burn",
    "= owes 0 1 gift 1",
    "= log",
    "beats",
    "beats K A",
    "beats x A yes",
    "gouji K",
    "gouji x yes",
    "set K",
    "set x ok",
]


@pytest.mark.parametrize("statement", BAD_STATEMENTS)
def test_a_bad_statement_of_the_body_names_its_line(statement: str) -> None:
    assert failed_lines(f"case one\n---\n# a comment\n\n{statement}\n") == [5]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("0 7", "expected it to be accepted, refused with NOT_IN_HAND"),
        ("0 7 ! NOT_A_SET", "expected NOT_A_SET, refused with NOT_IN_HAND"),
        ("0 3 ! NOT_A_SET", "expected NOT_A_SET, but it was accepted"),
        ("= turn 4", "expected 4, found 0"),
        ("= gouji maybe", "expected maybe, found no"),
        ("* decline", "seat 0 was refused with NO_WINDOW"),
        ("beats K A no", "expected no, found yes"),
        ("set KQ ok", "expected ok, found NOT_A_SET"),
    ],
)
def test_a_line_that_does_not_hold_says_what_was_expected_and_what_was_found(statement: str, said: str) -> None:
    assert said in only_message(f"case one\n---\n{statement}\n")


def test_a_wrong_line_does_not_hide_the_ones_after_it() -> None:
    assert failed_lines("case one\n---\n= turn 1\n= turn 0\n= turn 2\n") == [3, 5]


def test_a_bad_case_does_not_hide_the_next_one() -> None:
    results = run_text("case one\nbogus\n---\ncase two\n---\n= turn 0\n")

    assert [result.passed for result in results] == [False, True]


@pytest.mark.parametrize("written", ["hand 0 5\n", "---\n", "0 3\n"])
def test_a_file_begins_with_a_case(written: str) -> None:
    assert failed_lines(f"\n{written}") == [2]


@pytest.mark.parametrize("written", ["", "\n\n", "# nothing\n"])
def test_a_file_may_be_empty(written: str) -> None:
    assert run_text(written) == []


def test_comments_blanks_and_line_endings_do_not_matter() -> None:
    assert failed_lines("case one # two\r\n  lead   2\r\n---\r\n\t2   3  # three\r\n= turn  3\r\n") == []


def test_a_case_keeps_its_name_line_and_rules() -> None:
    [case] = read_cases("\ncase a last set\nrule R6.1 R6.2\nrule R4.7\n---\n0 3\n")

    assert (case.name, case.line, case.rules) == ("a last set", 2, ("R6.1", "R6.2", "R4.7"))


def test_an_active_seat_has_cards() -> None:
    assert failed_lines("case one\nhand 1 -\n---\n0 3\n") == [1]
    assert failed_lines("case one\nhand 1 -\nout 1 1\n---\n0 3\n") == []


def test_from_deal_needs_a_deck_for_six() -> None:
    assert failed_lines("case one\nfrom deal\n---\n= turn 0\n") == [1]
    assert failed_lines("case one\ndeck 345\nfrom deal\n---\n= turn 0\n") == [1]


def _mutilations(written: str) -> Iterator[str]:
    lines = written.splitlines()
    for at, line in enumerate(lines):
        words = line.split()
        changed = (words[:-1], words[1:], [*words, "0"], [*words, "zz"], ["9", *words[1:]], [*words[:1], "-"])
        for other in changed:
            yield "\n".join((*lines[:at], " ".join(other), *lines[at + 1 :]))


@pytest.mark.parametrize("file", ["burn", "threes_last", "sets", "shown", "order"])
def test_no_mutilated_line_ends_in_more_than_a_complaint(file: str) -> None:
    written = (CASES / f"{file}.gouji").read_text(encoding="utf-8")
    cases = [f"case{part}" for part in written.split("\ncase")[1:]]

    for case in cases:
        for other in _mutilations(case):
            assert all(failure.line > 0 for result in run_text(other) for failure in result.failures)


# Actions


@pytest.mark.parametrize("words", ["", "55 66", "pass now", "burn", "buy 33", "consult 6", "dock two", "zz"])
def test_what_is_no_action_is_refused_with_its_line(words: str) -> None:
    with pytest.raises(BadNotation) as refused:
        action(0, tuple(words.split()), 17)

    assert refused.value.line == 17


# Cards


def test_a_letter_and_a_suit_are_one_card() -> None:
    assert size(parse("TS")) == 1


def test_a_small_s_is_a_small_joker() -> None:
    assert letters(parse("Ts")) == "sT"


def test_case_matters() -> None:
    with pytest.raises(NotCards):
        parse("t")
    with pytest.raises(NotCards):
        parse("B")


def test_plain_letters_take_the_suits_in_rotation() -> None:
    assert faces_text(parse_faces("55555")) == "5S5H5D5C5S"


def test_each_rank_has_its_own_rotation() -> None:
    assert faces_text(parse_faces("56565")) == "5S6S5H6H5D"


def test_blanks_between_cards_are_nothing() -> None:
    assert parse("5 5\t6") == parse("556")


def test_the_order_of_letters_does_not_matter_to_a_multiset() -> None:
    assert parse("s2K5") == parse("5K2s")


def test_no_cards_are_written_as_nothing() -> None:
    assert size(parse("")) == 0
    assert text(parse("")) == ""


@pytest.mark.parametrize("written", ["1", "10", "X", "5Z", "S", "S5", "sS", "bH", "5SS", "5-", "é", "５"])
def test_other_letters_are_no_cards(written: str) -> None:
    with pytest.raises(NotCards):
        parse(written)


def test_more_of_a_rank_than_a_deck_holds_is_no_hand() -> None:
    assert size(parse("5" * 31)) == 31
    with pytest.raises(NotCards):
        parse("5" * 32)
    with pytest.raises(NotCards):
        parse("5S" * 32)


def test_text_and_letters_begin_with_the_highest() -> None:
    hand = parse("3STHs2CbTH")

    assert text(hand) == "bs2CTHTH3S"
    assert letters(hand) == "bs2TT3"


def test_what_is_written_is_read_back() -> None:
    hand = parse("3S3H4D5C6S7H8D9CTSJHQDKCAS2Hsb")

    assert parse(text(hand)) == hand
    assert cards_of(parse_faces(text(hand))) == hand
