"""The laws of the game that hold at every event (R14), as functions that name what is broken.

Law: pure checks for tests and simulations; the rules never call them.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.rules.cards import cards_of
from engine.rules.events import DealEvent, Phase
from engine.rules.scoring import is_sweep
from engine.rules.seats import SEATS
from engine.rules.state import Deal, conserved, is_over, waiting
from engine.rules.variant import CHARTER


def broken(deal: Deal) -> Iterator[str]:
    """Every law that this state breaks, as a sentence; nothing for a sound state."""
    if _is_dealt(deal) and conserved(deal) != cards_of(deal.setup.deck):
        yield "R14.1: cards were lost or made"
    if _is_dealt(deal) and not is_over(deal) and not waiting(deal):
        yield "R14.4: nobody can act"
    if deal.phase is Phase.OVER:
        yield from _broken_at_the_end(deal)


def _is_dealt(deal: Deal) -> bool:
    return any(deal.hands)


def _broken_at_the_end(deal: Deal) -> Iterator[str]:
    if sorted(deal.places) != list(SEATS) or sorted(deal.standing.places) != [1, 2, 3, 4, 5, 6]:
        yield "R14.8: the places are no permutation"
    even, odd = deal.points
    standard = deal.variant.place_points == CHARTER.place_points and deal.variant.sweep_points == CHARTER.sweep_points
    if (even and odd) or (standard and not {even, odd} <= {0, 2, 4, 6, 12}):
        yield "R14.7: these points cannot be"
    if is_sweep(deal.places) and max(even, odd) != deal.variant.sweep_points:
        yield "R6.9: a sweep scores a sweep's points"


def broken_between(before: Deal, event: DealEvent, after: Deal) -> Iterator[str]:
    """What an event itself breaks, seen from the states around it."""
    if before.points_of.opened & ~after.points_of.opened:
        yield f"{type(event).__name__} closed an opened point"
    if after.standing.active & ~before.standing.active:
        yield f"{type(event).__name__} brought a seat back"
    if _is_dealt(before) and conserved(before) != conserved(after):
        yield f"R14.1: {type(event).__name__} lost or made cards"
