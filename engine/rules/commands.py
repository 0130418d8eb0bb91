"""What seats and the house may ask for: one frozen value per command, imperatives.

Law: commands carry a wish and nothing decided. Cards are a wish by rank; suits in it are a preference (R0).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.rules.cards import Cards


@dataclass(frozen=True, slots=True)
class Begin:
    """The house: start the deal that `open_deal` has prepared (R9.5)."""


@dataclass(frozen=True, slots=True)
class Lay:
    """Lay this set, as a lead or to beat the table (R4.1)."""

    seat: int
    cards: Cards


@dataclass(frozen=True, slots=True)
class Pass:
    """Pass for this trick (R4.2, R4.3)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Cover:
    """The opposite's final no (R4.4)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Yield:
    """Let the seats behind speak first (R4.5)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Burn:
    """In a burn or counter window: declare a burn with this covering set (R5.1)."""

    seat: int
    cards: Cards


@dataclass(frozen=True, slots=True)
class Decline:
    """No burn (R5.1), or no order for a teammate's hand (R11.2)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply for the windfall (R6.6)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Agree:
    """Grant a windfall application (R6.6), or agree to a swap of places (R6.10)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse a windfall application (R6.6)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Revolt:
    """Leave the deal as a revolter (R7.1)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Stay:
    """Do not revolt (R7.1)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Renounce:
    """Give up parting gouji (R6.3, R7.4)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Declare:
    """Declare that the opposite will not open (R8.4)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Silent:
    """Declare nothing (R8.4)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Buy:
    """Buy one card of this rank (R9.2)."""

    seat: int
    rank: int


@dataclass(frozen=True, slots=True)
class No:
    """Buy nothing (R9.2)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Discard:
    """Take these ranks out of all hands (R9.6)."""

    seat: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """Discard nothing (R9.6)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Return:
    """Return these cards to the payer of a tribute (R10.3)."""

    seat: int
    cards: Cards


@dataclass(frozen=True, slots=True)
class Consult:
    """Show one's hand to a teammate that no longer plays (R11.2)."""

    seat: int
    teammate: int


@dataclass(frozen=True, slots=True)
class Suggest:
    """Suggest a set to a teammate whose hand one sees (R11.2)."""

    seat: int
    to: int
    cards: Cards


@dataclass(frozen=True, slots=True)
class HandOver:
    """Let a teammate order one's whole hand (R11.2, `advice=order`)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Order:
    """The whole hand of the seat that handed over, set after set (R11.2)."""

    seat: int
    sets: tuple[Cards, ...]


@dataclass(frozen=True, slots=True)
class Swap:
    """Propose to exchange fifth and last place (R6.10)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for the number of cards of a seat (R11.1, `report=on_request`)."""

    seat: int
    of: int


@dataclass(frozen=True, slots=True)
class TimeOut:
    """The house: this seat's time ran out (R4.11)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Warn:
    """The house warns a seat (R12)."""

    seat: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Forfeit:
    """The house takes the seat's next turn (R12)."""

    seat: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Dock:
    """The house takes points from the seat's running total (R12)."""

    seat: int
    points: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JudgeLast:
    """The house judges the seat last (R12)."""

    seat: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Disqualify:
    """The house removes the player of this seat from the match (R12)."""

    seat: int
    reason: str = ""


SeatCommand = (
    Lay
    | Pass
    | Cover
    | Yield
    | Burn
    | Decline
    | Apply
    | Agree
    | Refuse
    | Revolt
    | Stay
    | Renounce
    | Declare
    | Silent
    | Buy
    | No
    | Discard
    | Keep
    | Return
    | Consult
    | Suggest
    | HandOver
    | Order
    | Swap
    | Ask
)
HouseCommand = Begin | TimeOut | Warn | Forfeit | Dock | JudgeLast | Disqualify
Command = SeatCommand | HouseCommand
