"""A stranger can check a played deal, and no line of it can be changed unseen."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine import match as table
from engine.rules.commands import Disqualify, Revolt, Stay, Swap
from engine.rules.variant import VARIANTS, resolve
from engine.runtime.faults import NotFound
from engine.service.export import DealIsRunning, export
from engine.service.verifier import Problem, rebuild, verify_notation
from tests.support.players import play_out
from tests.support.tables import LoggedTable

SHORT = {"deck": "{5:16,6:16,7:16,8:16,9:16,T:16}", "swap_last": "yes"}
"""Fewer cards, so that a test that judges a deal for each of its lines does not take long."""


@pytest.fixture(scope="module")
def played() -> LoggedTable:
    """Two deals of a match and the beginning of a third, with all that happens between deals."""
    made = LoggedTable.seated(resolve("shandong", SHORT), chance="a match")
    play_out(made, 1)
    made.plays(made.match.places[5], Swap(made.match.places[5]))
    made.accepts(Disqualify(made.match.places[0], "signals & talk"))
    made.accepts(table.Substitute(made.match.places[0], "a stranger"))
    made.accepts(table.ExtendDeadline(1_790_000_123_456))
    made.everybody_ready()
    play_out(made, 2)
    made.accepts(table.CallDeal())
    return made


@pytest.fixture(scope="module")
def text(played: LoggedTable) -> str:
    return export(played.log, 1)


def test_what_is_exported_is_true(text: str) -> None:
    assert verify_notation(text) == []


@pytest.mark.parametrize("key", VARIANTS)
def test_whole_matches_of_every_variant_are_true(key: str) -> None:
    made = LoggedTable.seated(key, chance=key)
    for number in range(1, 4):
        play_out(made, f"{key} {number}")
        assert verify_notation(export(made.log, number)) == []
        if made.match.phase is table.Phase.BETWEEN_DEALS:
            made.everybody_ready()


def test_a_void_deal_and_the_one_dealt_again_are_true() -> None:
    made = LoggedTable.seated(resolve("barracks", {"deck": "{2:16,s:4,b:4}", "buy": "()", "threes_last": "no"}))
    for seat in range(6):
        made.plays(seat, (Revolt if seat < 2 else Stay)(seat))
    assert made.match.voided
    made.everybody_ready()
    for seat in range(6):
        made.plays(seat, Stay(seat))
    play_out(made, "dealt again")

    void, again = export(made.log, 1), export(made.log, 2)

    assert "= log deal_voided" in void
    assert "= places" not in void
    assert any(line.startswith("draws ") for line in again.splitlines())
    assert verify_notation(void) == verify_notation(again) == []


def test_a_table_closed_in_the_middle_of_a_deal_is_true() -> None:
    made = LoggedTable.seated("jinan")
    made.time_passes()
    made.accepts(table.CloseTable("a storm; the house is down"))

    text = export(made.log, 1)

    assert "close a%20storm%3B%20the%20house%20is%20down" in text
    assert verify_notation(text) == []


def test_a_played_deal_has_a_line_for_every_event(text: str, played: LoggedTable) -> None:
    starts = [stored.version for stored in played.log if stored.type == "deal_started"]
    versions = [int(line.partition("# @")[2].split()[0]) for line in text.splitlines() if "# @" in line]

    assert versions == list(range(starts[0], starts[1]))


def test_a_deal_that_runs_is_not_exported(played: LoggedTable) -> None:
    with pytest.raises(DealIsRunning):
        export(played.log, 3)


def test_a_deal_that_was_never_dealt_is_not_found(played: LoggedTable) -> None:
    with pytest.raises(NotFound):
        export(played.log, 4)


def test_no_secret_of_the_next_deal_is_told(played: LoggedTable, text: str) -> None:
    second = next(
        started
        for stored in played.log
        if stored.type == "deal_started" and (started := rebuild([stored]).started) is not None and started.deal == 2
    )

    assert second.seed
    assert second.seed not in text
    assert all(given == "" or f"contribution {given}" not in text for given in second.contributions or ())


def test_every_changed_line_is_found(text: str) -> None:
    unseen = [
        (number, line, forged)
        for number, line in enumerate(text.splitlines(), 1)
        if not verify_notation(with_line(text, number, forged := forgery(line, number)))
    ]

    assert unseen == []


def forgery(line: str, number: int) -> str:
    """The line left out, doubled, or with a character changed somewhere, in turns."""
    at = (number * 7919) % len(line)
    changed = f"{line[:at]}{'1' if line[at] != '1' else '2'}{line[at + 1 :]}"
    return ("", f"{line}\n{line}", changed, changed)[number % 4]


@pytest.mark.parametrize("name", ["started", "commit", "seed", "deck", "lead", "counted", "standing", "ranked", "head"])
def test_every_digit_of_the_header_counts(text: str, name: str) -> None:
    lines = text.splitlines()
    number = next(at for at, line in enumerate(lines, 1) if line.startswith(f"{name} "))
    line = lines[number - 1]
    places = [at for at in range(len(name) + 1, len(line)) if line[at].isalnum()][:: max(1, len(line) // 20)]

    unseen = [at for at in places if not verify_notation(with_line(text, number, one_up(line, at)))]

    assert unseen == []


def one_up(line: str, at: int) -> str:
    return f"{line[:at]}{chr(ord(line[at]) + 1)}{line[at + 1 :]}"


def with_line(text: str, number: int, line: str) -> str:
    lines = text.splitlines()
    lines[number - 1] = line
    return "\n".join(lines) + "\n"


def test_the_line_that_was_changed_is_named(text: str) -> None:
    lines = text.splitlines()
    laid = next(number for number, line in enumerate(lines, 1) if " pass  #" in line)

    forged = with_line(text, laid, lines[laid - 1].replace(" pass ", " cover "))

    assert [problem.line for problem in verify_notation(forged)] == [laid]


def test_another_seed_is_not_what_the_house_was_bound_to(text: str) -> None:
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines, 1) if line.startswith("seed "))

    problems = verify_notation(with_line(text, at, "seed " + "00" * 32))

    assert "the house was not bound to this seed" in {problem.message for problem in problems}


def test_two_cards_of_the_deck_exchanged_are_found(text: str) -> None:
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines, 1) if line.startswith("deck "))
    deck = lines[at - 1].removeprefix("deck ")
    exchanged = next(deck[:i] + deck[i + 2 : i + 4] + deck[i : i + 2] + deck[i + 4 :] for i in (0,))

    assert Problem(at, "this deck does not follow from seed and contributions") in verify_notation(
        with_line(text, at, f"deck {exchanged}")
    )


@pytest.mark.parametrize(
    "junk", ["", "---", "\n\n---\n", "gouji 1\n---\n", "# a comment", "gouji 1\n", "\x00", "case x\n---\n0 pass\n"]
)
def test_what_is_no_played_deal_is_a_problem_not_an_accident(junk: str) -> None:
    assert verify_notation(junk)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random=st.data())
def test_no_garbling_of_a_played_deal_is_an_accident(text: str, random: st.DataObject) -> None:
    lines = text.splitlines()
    at = random.draw(st.integers(0, len(lines) - 1))
    words = lines[at].split(" ")
    word = random.draw(st.integers(0, len(words) - 1))
    words[word] = random.draw(st.sampled_from(JUNK) | st.text(max_size=8).filter(lambda made: made != words[word]))
    assume(" ".join(words).strip() != lines[at])

    assert verify_notation("\n".join([*lines[:at], " ".join(words), *lines[at + 1 :]]))


JUNK = ("-1", "6", "99999999999999999999", "9" * 5000, "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "{3:1}")


def test_comments_and_blank_lines_of_a_reader_do_not_matter(text: str) -> None:
    assert verify_notation("# my best deal\n\n" + text.replace("---\n", "---\n\n# here it begins\n")) == []
