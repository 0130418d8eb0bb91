"""What happened in a deal: one frozen value per fact, with every decision already taken.

Law: `decide` computes what these carry and `evolve` copies it; nothing here is looked up again. A field that only some
viewers may see is optional: `visibility.redacted` leaves it `None` for the others. Names are those of notation.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.rules.cards import Cards
from engine.rules.variant import DebtKind
from engine.rules.words import Debt as Debt
from engine.rules.words import Phase as Phase
from engine.rules.words import WindowKind as WindowKind

Hands = tuple[Cards | None, ...]


@dataclass(frozen=True, slots=True)
class CardsDealt:
    """Six hands are dealt (R1.3). `cutter` is None when nobody cut; `leader` leads the first trick."""

    hands: Hands
    cutter: int | None
    first_drawer: int
    leader: int


@dataclass(frozen=True, slots=True)
class Revolted:
    """The seat has left the deal as a revolter, for now fourth (R7.3); its opposite gets parting gouji (R7.4)."""

    seat: int
    place: int
    parting_gouji: int


@dataclass(frozen=True, slots=True)
class DealVoided:
    """Two or more revolted (R7.2). `hands` as dealt, tribute undone."""

    revolters: tuple[int, ...]
    hands: Hands


@dataclass(frozen=True, slots=True)
class Bought:
    """A card changed hands for a price, which may be no card at all (R9.2, R9.3)."""

    seat: int
    seller: int
    card: Cards
    price: Cards


@dataclass(frozen=True, slots=True)
class PurchaseDeclined:
    """The seat buys no card of this rank (R9.2)."""

    seat: int
    rank: int


@dataclass(frozen=True, slots=True)
class TributePaid:
    """Tribute was paid; payer and payee see the cards, all others their number (R10.1)."""

    payer: int
    payee: int
    kind: DebtKind
    amount: int
    cards: Cards | None


@dataclass(frozen=True, slots=True)
class TributeReturned:
    """The payee returned cards to the payer (R10.3)."""

    seat: int
    payer: int
    amount: int
    cards: Cards | None


@dataclass(frozen=True, slots=True)
class DebtLapsed:
    """That much of a debt found no card or is not owed (R10.1, R10.2, R7.1)."""

    payer: int
    payee: int
    kind: DebtKind
    amount: int


@dataclass(frozen=True, slots=True)
class Declared:
    """The seat declared that its opposite will not open (R8.4)."""

    seat: int
    before_deal: bool


@dataclass(frozen=True, slots=True)
class RanksDiscarded:
    """These ranks were taken out of all hands (R9.6); `cards` of each seat."""

    seat: int
    ranks: tuple[int, ...]
    cards: tuple[Cards, ...]


@dataclass(frozen=True, slots=True)
class RanksKept:
    """The first leader discards nothing (R9.6)."""

    seat: int


@dataclass(frozen=True, slots=True)
class PhaseBegan:
    """The deal enters this phase (R9.5). `leader` leads the first trick as things stand (R1.6)."""

    phase: Phase
    leader: int | None


@dataclass(frozen=True, slots=True)
class PurchaseOffered:
    """The seat is asked to buy a card of this rank (R9.2)."""

    seat: int
    rank: int


@dataclass(frozen=True, slots=True)
class ReturnDue:
    """The payee is asked to return this many cards to the payer (R10.3)."""

    seat: int
    payer: int
    amount: int


@dataclass(frozen=True, slots=True)
class WindowOpened:
    """These seats are asked at once and answer secretly (R11.3)."""

    kind: WindowKind
    asked: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """The seat has answered; what, only itself sees until the window closes (R5.1)."""

    seat: int
    yes: bool | None
    cards: Cards | None


@dataclass(frozen=True, slots=True)
class WindowClosed:
    """Everyone has answered, or was timed out (R5.1)."""

    kind: WindowKind


@dataclass(frozen=True, slots=True)
class SetLaid:
    """A set lies on the table (R4.1). `gouji`: on the table (R3.4). `answers`: who is asked for an answer, in order."""

    seat: int
    cards: Cards
    gouji: bool
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Passed:
    """The seat passed (R4.2). `answers`: who is still asked, in order."""

    seat: int
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Covered:
    """The owner's opposite said his final no (R4.4)."""

    seat: int
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Yielded:
    """The owner's opposite lets the others speak first (R4.5)."""

    seat: int
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TurnLost:
    """The seat lost its turn (R4.10, R12). `leader` leads instead if it was to lead."""

    seat: int
    leader: int | None


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The seat's time ran out; what it did instead follows (R4.11)."""

    seat: int


@dataclass(frozen=True, slots=True)
class TrickEnded:
    """The trick is over (R4.9). `winner` owned the last set; `leader` leads the next trick."""

    winner: int
    leader: int | None


@dataclass(frozen=True, slots=True)
class BurnDeclared:
    """The seat had declared a burn in the window that closed (R5.1)."""

    seat: int


@dataclass(frozen=True, slots=True)
class BurnStarted:
    """The seat burns; the set's owner is the victim (R5.2). `counter`: it ended another burn (R5.7)."""

    seat: int
    victim: int
    counter: bool


@dataclass(frozen=True, slots=True)
class BurnCountered:
    """The burn of `seat` was ended by a counter-burn (R5.7)."""

    seat: int
    by: int


@dataclass(frozen=True, slots=True)
class BurnRelieved:
    """A set of the burner was beaten; nobody owes anything (R5.6)."""

    seat: int
    by: int


@dataclass(frozen=True, slots=True)
class BurnFailed:
    """A false burn (R5.8)."""

    seat: int


@dataclass(frozen=True, slots=True)
class BurnEnded:
    """The burn ended without debts (R4.10, R12)."""

    seat: int


@dataclass(frozen=True, slots=True)
class BurnSucceeded:
    """The burner went out (R5.9); the victim owes it `amount` cards."""

    seat: int
    victim: int
    amount: int


@dataclass(frozen=True, slots=True)
class WentOut:
    """The hand is empty; the seat takes this place (R6.1).

    `closes`: for the rest of the trick who has passed is out of it, the seat's opposite excepted (R6.3). `parting`: the
    opposite has the right of a parting gouji, which outlasts the trick when `kept`.
    """

    seat: int
    place: int
    closes: bool
    parting: bool
    kept: bool


@dataclass(frozen=True, slots=True)
class WindfallApplied:
    """The seat applied for the windfall (R6.6)."""

    seat: int


@dataclass(frozen=True, slots=True)
class WindfallGranted:
    """All agreed; the seat leads the next trick (R6.6)."""

    seat: int


@dataclass(frozen=True, slots=True)
class WindfallRefused:
    """Somebody refused; the trick goes on with the seat to act (R6.6)."""

    seat: int


@dataclass(frozen=True, slots=True)
class PartingGoujiLaid:
    """The set just laid is a parting gouji: nobody but burners may answer it (R6.3, R7.4). `left`: after this trick."""

    seat: int
    left: int


@dataclass(frozen=True, slots=True)
class PartingGoujiRenounced:
    """The seat gave up its parting gouji (R6.3, R7.4)."""

    seat: int


@dataclass(frozen=True, slots=True)
class BecameHeadless:
    """The seat has no opposite any more (R6.4)."""

    seat: int


@dataclass(frozen=True, slots=True)
class ChaosBegan:
    """The game is in chaos from the next trick on (R6.5)."""


@dataclass(frozen=True, slots=True)
class RevolterPromoted:
    """The revolter's teammates are first and second: he is third (R7.3)."""

    seat: int
    place: int


@dataclass(frozen=True, slots=True)
class Smothered:
    """The set that left the seat only 3s was beaten (R9.7); it owes `amount` cards."""

    seat: int
    by: int
    amount: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The seat left the deal with this place (R5.8, R9.7, R12).

    `answers`: who is still asked, in order. `leader`: who leads instead, if the seat was to lead.
    """

    seat: int
    place: int
    answers: tuple[int, ...]
    leader: int | None


@dataclass(frozen=True, slots=True)
class DealEnded:
    """The deal is over (R6.8): seats by place, the points of each team, the debts it leaves."""

    places: tuple[int, ...]
    even_points: int
    odd_points: int
    debts: tuple[Debt, ...]


@dataclass(frozen=True, slots=True)
class PointOpened:
    """The seat has opened its point (R8.1, R8.2, R7.5)."""

    seat: int


@dataclass(frozen=True, slots=True)
class FoursDue:
    """The seat must lead all its 4s next to open (R8.2)."""

    seat: int


@dataclass(frozen=True, slots=True)
class OpeningLost:
    """The seat cannot open in this deal any more (R8.2)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Consulted:
    """The seat chose this teammate to see its hand (R11.2)."""

    seat: int
    teammate: int


@dataclass(frozen=True, slots=True)
class Suggested:
    """A teammate suggested a set; the two of them see it (R11.2)."""

    seat: int
    to: int
    cards: Cards | None


@dataclass(frozen=True, slots=True)
class CountAsked:
    """Somebody asked for the number of cards of a seat (R11.1). `shown`: it is shown from now on."""

    seat: int
    of: int
    shown: bool


@dataclass(frozen=True, slots=True)
class OrderAsked:
    """The seat handed over the order of its whole hand (R11.2)."""

    seat: int
    teammate: int


@dataclass(frozen=True, slots=True)
class OrderGiven:
    """The teammate ordered the hand of `to`; the team sees the sets (R11.2)."""

    seat: int
    to: int
    sets: tuple[Cards, ...] | None


@dataclass(frozen=True, slots=True)
class OrderDeclined:
    """The teammate orders nothing (R11.2)."""

    seat: int
    to: int


@dataclass(frozen=True, slots=True)
class OrderLapsed:
    """A set was beaten or the lead lost before the hand was out (R11.2)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Warned:
    """The house warned the seat (R12)."""

    seat: int
    reason: str


@dataclass(frozen=True, slots=True)
class Forfeited:
    """The seat will lose its next turn (R12)."""

    seat: int
    reason: str


@dataclass(frozen=True, slots=True)
class PointsDocked:
    """Points taken from the seat's running total (R12)."""

    seat: int
    points: int
    reason: str


@dataclass(frozen=True, slots=True)
class JudgedLast:
    """The house judged the seat last (R12)."""

    seat: int
    reason: str


@dataclass(frozen=True, slots=True)
class Disqualified:
    """The player of this seat leaves the match (R12)."""

    seat: int
    reason: str


@dataclass(frozen=True, slots=True)
class SwapProposed:
    """Fifth or last proposed to exchange the two places (R6.10)."""

    seat: int


@dataclass(frozen=True, slots=True)
class PlacesSwapped:
    """Fifth and last exchanged their places (R6.10); the debts that follow."""

    places: tuple[int, ...]
    debts: tuple[Debt, ...]


DealEvent = (
    CardsDealt
    | Revolted
    | DealVoided
    | Bought
    | PurchaseDeclined
    | TributePaid
    | TributeReturned
    | DebtLapsed
    | Declared
    | RanksDiscarded
    | RanksKept
    | PhaseBegan
    | PurchaseOffered
    | ReturnDue
    | WindowOpened
    | Answered
    | WindowClosed
    | SetLaid
    | Passed
    | Covered
    | Yielded
    | TurnLost
    | TimedOut
    | TrickEnded
    | BurnDeclared
    | BurnStarted
    | BurnCountered
    | BurnRelieved
    | BurnFailed
    | BurnEnded
    | BurnSucceeded
    | WentOut
    | WindfallApplied
    | WindfallGranted
    | WindfallRefused
    | PartingGoujiLaid
    | PartingGoujiRenounced
    | BecameHeadless
    | ChaosBegan
    | RevolterPromoted
    | Smothered
    | Failed
    | DealEnded
    | PointOpened
    | FoursDue
    | OpeningLost
    | Consulted
    | Suggested
    | CountAsked
    | OrderAsked
    | OrderGiven
    | OrderDeclined
    | OrderLapsed
    | Warned
    | Forfeited
    | PointsDocked
    | JudgedLast
    | Disqualified
    | SwapProposed
    | PlacesSwapped
)
