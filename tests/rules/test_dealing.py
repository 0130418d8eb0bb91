"""The deck and the cut where no case can show them: suits that are left, who is the cutter afterwards (R1.2, R1.3)."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.rules.cards import BIG, FOUR, SMALL, THREE, face, face_text, parse_faces, rank_of, size
from engine.rules.dealing import deal, full_deck
from engine.rules.state import Setup
from engine.rules.variant import VARIANTS, Variant, read

ROTATE = read("qingdao-charter", {"next_lead": "rotate"})


def _setup(variant: Variant, deck: tuple[int, ...], places: tuple[int, ...] = (), cutter: int | None = None) -> Setup:
    return Setup(
        variant=variant,
        deck=deck,
        places=places,
        debts=(),
        cutter=cutter,
        changed=(),
        random_seat=0,
        first_drawer=None,
    )


def test_four_packs_hold_every_face_four_times() -> None:
    deck = full_deck(VARIANTS["qingdao-charter"])

    assert len(deck) == 216
    assert set(Counter(deck).values()) == {4}
    assert len({one for one in deck if rank_of(one) < SMALL}) == 52


def test_jinan_plays_with_33_cards_each() -> None:
    deck = full_deck(VARIANTS["jinan"])

    assert len(deck) == 198
    assert Counter(map(rank_of, deck))[THREE] == 6
    assert Counter(map(rank_of, deck))[FOUR] == 8
    assert {size(hand) for hand in deal(_setup(VARIANTS["jinan"], deck)).hands} == {33}


def test_cards_are_removed_suit_by_suit_in_rotation() -> None:
    left = Counter(face_text(one) for one in full_deck(VARIANTS["jinan"]) if rank_of(one) in (THREE, FOUR))

    assert left == {"3S": 1, "3H": 1, "3D": 2, "3C": 2, "4S": 2, "4H": 2, "4D": 2, "4C": 2}


def test_removed_jokers_have_no_suit() -> None:
    deck = full_deck(read("qingdao-charter", {"deck": "{s:3,b:3}"}))

    assert Counter(deck)[face(SMALL)] == Counter(deck)[face(BIG)] == 1


@pytest.mark.parametrize(
    ("deck", "cutter", "first_drawer"),
    [("5SsJSQS2Sb", 0, 4), ("s5SJSQS2Sb", 1, 5), ("sb5SJSQS2S", 2, 0), ("sbsbsb", 0, 0)],
)
def test_the_cutter_is_the_seat_whose_card_counted(deck: str, cutter: int, first_drawer: int) -> None:
    dealt = deal(_setup(ROTATE, parse_faces(deck)))

    assert (dealt.cutter, dealt.first_drawer) == (cutter, first_drawer)


def test_in_the_next_deal_the_seat_after_the_cutter_cuts() -> None:
    dealt = deal(_setup(ROTATE, parse_faces("s5SJSQS2Sb"), places=(0, 1, 2, 3, 4, 5), cutter=4))

    assert dealt.cutter == 0


def test_a_deal_without_a_cut_leaves_the_cutter_as_he_was() -> None:
    dealt = deal(_setup(VARIANTS["qingdao-charter"], parse_faces("5SsJSQS2Sb"), places=(0, 1, 2, 3, 4, 5), cutter=2))

    assert (dealt.cutter, dealt.first_drawer) == (2, 5)
