"""The state of a deal: frozen values, grouped by what changes together, and the simple questions they answer.

Law: values and questions only; nothing here decides or changes anything. They are NamedTuples because replacing a field
of one costs a fifth of what it costs in a frozen dataclass, and folding is the hot path. Sets of seats are masks
(`seats.py`). Everything a deal depends on is in here: no clock, no chance.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.rules.cards import NO_CARDS, Cards, size
from engine.rules.events import Debt, Phase, WindowKind
from engine.rules.seats import AFTER, BIT, EVERYBODY, MEMBERS, NOBODY, SEATS, opposite
from engine.rules.variant import Variant

Six = tuple[int, int, int, int, int, int]
SixHands = tuple[Cards, Cards, Cards, Cards, Cards, Cards]

ZEROS: Six = (0, 0, 0, 0, 0, 0)
NO_HANDS: SixHands = (NO_CARDS, NO_CARDS, NO_CARDS, NO_CARDS, NO_CARDS, NO_CARDS)


class Setup(NamedTuple):
    """Everything a deal starts from; all chance and all history of a deal is in here (R1.7)."""

    variant: Variant
    deck: tuple[int, ...]
    """Faces in dealing order; the first is the cut card."""
    places: tuple[int, ...] = ()
    """Seats of the deal before, first to last; empty for the first deal of a match."""
    debts: tuple[Debt, ...] = ()
    cutter: int | None = None
    """The seat that cut last."""
    changed: tuple[int, ...] = ()
    """Seats that changed hands since the deal before."""
    random_seat: int = 0
    first_drawer: int | None = None
    """Given for a deal that repeats a void one (R7.2)."""


class Trick(NamedTuple):
    """One trick, from an empty table on (R4)."""

    owner: int | None = None
    cards: Cards = NO_CARDS
    gouji: bool = False
    answers: tuple[int, ...] = ()
    """Who is still asked about the set on the table, in order; a seat may stand in it twice (R4.3 B)."""
    passed: int = NOBODY
    yielded: int | None = None
    closed: bool = False
    """A last set of the first or second place lies in it: who has passed is out of it (R6.3)."""
    exempt: int = NOBODY
    """The opposites of those last sets, for whom passes do not close the trick."""
    parting: int = NOBODY
    """Of these, who has the right of a parting gouji in this trick."""
    parting_laid: int = NOBODY
    """Who has laid or renounced parting gouji in this trick and keeps the right until it ends."""
    applied: int | None = None
    """Who has applied for the windfall in this trick (R6.6)."""
    handed_over: bool = False


NEW_TRICK = Trick()


class Window(NamedTuple):
    """An open question to several seats (R11.3). Answers are secret until it closes."""

    kind: WindowKind
    asked: int
    answered: int = NOBODY
    yes: int = NOBODY
    cards: tuple[Cards, ...] = NO_HANDS

    @property
    def waiting(self) -> int:
        """Who has still to answer."""
        return self.asked & ~self.answered


class Burn(NamedTuple):
    """A running burn (R5)."""

    burner: int
    victim: int
    counter: bool


class Standing(NamedTuple):
    """Who is still in the deal, and how the others left it (R5.8, R6, R7)."""

    active: int = EVERYBODY
    places: Six = ZEROS
    gone: tuple[int, ...] = ()
    """Seats that emptied their hands, in order."""
    failed: int = NOBODY
    revolter: int | None = None
    headless: int = NOBODY
    chaos: bool = False
    parting_gouji: Six = ZEROS
    """Rights of parting gouji that outlast the trick (R6.3 `once`, R7.4)."""


class Points(NamedTuple):
    """Opening and declaring (R8)."""

    opened: int = NOBODY
    fours_due: int = NOBODY
    lost: int = NOBODY
    declared: int = NOBODY
    declared_before: int = NOBODY


class Advice(NamedTuple):
    """What has been shown and handed over (R11)."""

    consulted: tuple[int | None, ...] = (None,) * 6
    counts_shown: int = NOBODY
    ordering: int | None = None
    """The seat whose hand is being ordered, or led in order."""
    order: tuple[Cards, ...] = ()


class House(NamedTuple):
    """Penalties (R12)."""

    forfeits: Six = ZEROS
    docked: Six = ZEROS


class Preparation(NamedTuple):
    """What happens between dealing and playing (R9, R10)."""

    dealt: SixHands = NO_HANDS
    offer: tuple[int, int] | None = None
    """Seat and rank of the purchase that is asked for."""
    dues: tuple[Debt, ...] = ()
    """Debts of the deal before that are not settled yet, in the order of payment."""
    returns: tuple[tuple[int, int, int], ...] = ()
    """Payee, payer and number of cards of the returns that are due."""
    eaten: SixHands = NO_HANDS
    """Cards received in the tribute phase."""


class Result(NamedTuple):
    """How the deal ended (R6.8 to R6.10, R10)."""

    places: tuple[int, ...] = ()
    points: tuple[int, int] = (0, 0)
    swap_proposer: int | None = None
    swapped: bool = False


class Deal(NamedTuple):
    """One deal at one moment."""

    setup: Setup
    phase: Phase = Phase.DEAL
    hands: SixHands = NO_HANDS
    cutter: int | None = None
    first_drawer: int = 0
    leader: int = 0
    """Who leads the trick, or led it."""
    trick: Trick = NEW_TRICK
    window: Window | None = None
    burn: Burn | None = None
    standing: Standing = Standing()
    points_of: Points = Points()
    advice: Advice = Advice()
    house: House = House()
    preparation: Preparation = Preparation()
    debts_left: tuple[Debt, ...] = ()
    """Debts that this deal leaves to the next."""
    played: Cards = NO_CARDS
    discarded: Cards = NO_CARDS
    result: Result = Result()

    @property
    def variant(self) -> Variant:
        """The rules this deal is played by."""
        return self.setup.variant

    @property
    def places(self) -> tuple[int, ...]:
        """Seats from first to last once the deal is over, else empty."""
        return self.result.places

    @property
    def points(self) -> tuple[int, int]:
        """The points of the even and the odd team once the deal is over."""
        return self.result.points

    @property
    def docked(self) -> Six:
        """Points taken from each seat by the house (R12)."""
        return self.house.docked


def is_active(deal: Deal, seat: int) -> bool:
    """Whether the seat still takes part: not out, revolted or failed (R4.1)."""
    return bool(deal.standing.active >> seat & 1)


def is_headless(deal: Deal, seat: int) -> bool:
    """Whether the seat has no opposite any more (R6.4)."""
    return bool(deal.standing.headless >> seat & 1)


def is_burner(deal: Deal, seat: int) -> bool:
    """Whether the seat is burning (R5)."""
    return deal.burn is not None and deal.burn.burner == seat


def turn(deal: Deal) -> int | None:
    """The one seat that is to act, or None: over, or a window is open."""
    if deal.window is not None:
        return None
    if deal.phase is Phase.PLAY:
        return deal.leader if deal.trick.owner is None else next(iter(deal.trick.answers), None)
    if deal.phase is Phase.BUY and deal.preparation.offer is not None:
        return deal.preparation.offer[0]
    if deal.phase is Phase.TRIBUTE and deal.preparation.returns:
        return deal.preparation.returns[0][0]
    return deal.leader if deal.phase is Phase.DISCARD else None


def waiting(deal: Deal) -> tuple[int, ...]:
    """The seats that must act now: one for a turn, several for a window, none when the deal is over."""
    if deal.window is not None:
        return MEMBERS[deal.window.waiting]
    seat = turn(deal)
    return () if seat is None else (seat,)


def is_over(deal: Deal) -> bool:
    """Whether nothing can be played any more (R6.8, R7.2)."""
    return deal.phase in (Phase.OVER, Phase.VOID)


def counts(deal: Deal) -> tuple[int, ...]:
    """The number of cards of each hand."""
    return tuple(size(hand) for hand in deal.hands)


def is_last_word(deal: Deal, seat: int) -> bool:
    """Whether the seat, asked now, can only beat or cover: nobody else is left, or a gouji set lies there (R4.4)."""
    trick = deal.trick
    return trick.gouji or trick.answers == (seat,)


def is_opposite_of_owner(deal: Deal, seat: int) -> bool:
    """Whether the set on the table is that of the seat's opposite, who has one: no chaos, not headless (R4.8, R6.5)."""
    owner = deal.trick.owner
    if owner is None or deal.standing.chaos or owner != opposite(seat):
        return False
    return not deal.standing.headless & BIT[owner]


def active_after(deal: Deal, seat: int) -> tuple[int, ...]:
    """The other active seats in order of play from this one on."""
    active = deal.standing.active
    return tuple(other for other in AFTER[seat] if active >> other & 1)


def free_places(deal: Deal) -> tuple[int, ...]:
    """Places 1 to 6 that nobody has, best first; a revolter's place is his (R7.3)."""
    taken = deal.standing.places
    return tuple(place for place in range(1, 7) if place not in taken)


def hands_with(hands: SixHands, seat: int, hand: Cards) -> SixHands:
    """The hands with that of one seat replaced."""
    return (*hands[:seat], hand, *hands[seat + 1 :])  # type: ignore[return-value]


def six_with(values: Six, seat: int, value: int) -> Six:
    """The six numbers with that of one seat replaced."""
    return (*values[:seat], value, *values[seat + 1 :])  # type: ignore[return-value]


def conserved(deal: Deal) -> Cards:
    """Hands, played and discarded cards together, which never change after dealing (R14.1)."""
    return Cards(sum(deal.hands[seat] for seat in SEATS) + deal.played + deal.discarded)
