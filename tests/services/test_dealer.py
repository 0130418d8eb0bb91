"""The house's chance: the same for everybody who computes it again, and fair."""

from collections import Counter
from dataclasses import replace
from uuid import UUID

from engine import match as table
from engine.rules.cards import faces_text
from engine.rules.dealing import full_deck
from engine.rules.variant import VARIANTS
from engine.service.dealer import Dealer, commitment, shuffle
from tests.support.tables import PLAYERS, TABLE_ID, LoggedTable, entropy

SEED = "00" * 31 + "2a"
NOTHING = ("",) * 6
SMALL_DECK = tuple(range(12))


def test_a_commitment_is_the_hash_of_documented_bytes() -> None:
    assert commitment(TABLE_ID, 1, SEED) == "c8f1911370dcf64a47a9c8fdc188ebca52b37038dbaac805084d2fcaebcf7973"


def test_a_known_seed_gives_a_known_deck() -> None:
    made = shuffle(TABLE_ID, 1, SEED, ("", "ff", "", "", "", "0a"), SMALL_DECK)

    assert faces_text(made.deck) == "5H3H5C4S5S5D3S4D3C3D4H4C"
    assert made.random_seat == 3


def test_a_shuffle_is_a_rearrangement_of_the_deck() -> None:
    deck = full_deck(VARIANTS["jinan"])

    made = shuffle(TABLE_ID, 1, SEED, NOTHING, deck)

    assert sorted(made.deck) == sorted(deck)
    assert made.deck != tuple(deck)


def test_everything_that_goes_in_changes_what_comes_out() -> None:
    deck = full_deck(VARIANTS["qingdao-charter"])
    other_table = UUID(int=TABLE_ID.int + 1)

    decks = {
        shuffle(TABLE_ID, 1, SEED, NOTHING, deck).deck,
        shuffle(other_table, 1, SEED, NOTHING, deck).deck,
        shuffle(TABLE_ID, 2, SEED, NOTHING, deck).deck,
        shuffle(TABLE_ID, 1, SEED[::-1], NOTHING, deck).deck,
        *(shuffle(TABLE_ID, 1, SEED, (*NOTHING[:seat], "f", *NOTHING[seat + 1 :]), deck).deck for seat in range(6)),
    }

    assert len(decks) == 10


def test_every_card_comes_to_every_place_equally_often() -> None:
    rounds = 6000
    found: Counter[tuple[int, int]] = Counter()
    for number in range(rounds):
        deck = shuffle(TABLE_ID, number, SEED, NOTHING, range(6)).deck
        found.update(enumerate(deck))

    # 36 cells of 1000 expected each; the deviation of one is under 29, so five of them are 145.
    assert len(found) == 36
    assert all(abs(seen - rounds / 6) < 145 for seen in found.values())


def test_every_seat_is_drawn_equally_often() -> None:
    drawn = Counter(shuffle(TABLE_ID, number, SEED, NOTHING, range(2)).random_seat for number in range(6000))

    assert sorted(drawn) == list(range(6))
    assert all(abs(seen - 1000) < 145 for seen in drawn.values())


def test_a_draw_is_an_order_of_the_six_seats() -> None:
    dealer = Dealer(entropy("draws"))

    orders = {dealer.draw() for _ in range(50)}

    assert all(sorted(order) == list(range(6)) for order in orders)
    assert len(orders) > 40


def test_every_seed_is_new_and_has_256_bits() -> None:
    dealer = Dealer()

    seeds = {dealer.commit(TABLE_ID, table.EMPTY).seed for _ in range(20)}

    assert len(seeds) == 20
    assert {len(bytes.fromhex(seed)) for seed in seeds} == {32}


def test_the_house_deals_by_the_seed_it_was_bound_to() -> None:
    played = LoggedTable()
    played.accepts(table.OpenTable(replace(VARIANTS["qingdao-charter"]), players=PLAYERS))
    bound = played.match

    played.everybody_ready()

    started = played.match.started
    assert started is not None
    assert started.seed == bound.seed
    assert started.commitment == commitment(TABLE_ID, 1, bound.seed)
    assert started.contributions == ("00ff", "01ff", "02ff", "03ff", "04ff", "05ff")
    due = shuffle(TABLE_ID, 1, bound.seed, started.contributions, full_deck(started.variant))
    assert (started.deck, started.random_seat) == due
