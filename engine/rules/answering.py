"""Who may answer a set, and in which order (R4.2 to R4.8, R6.3, R6.5).

Law: pure questions about a deal and a set that is about to lie on the table; nothing is told here. The answer is a
queue of seats, computed once when a set is laid and kept in `Trick.answers`; the last word (R4.3 B) is a second entry
of the opposite at its end.
"""

from __future__ import annotations

from engine.rules.seats import AFTER, BIT, has, opposite
from engine.rules.sets import CardSet, can_be_beaten
from engine.rules.state import Deal, Trick, active_after, is_headless


def answers(deal: Deal, seat: int, laid: CardSet, *, gouji: bool, parting: bool) -> tuple[int, ...]:
    """Who is asked about this set of the seat, first to last; `deal.trick` must know who has passed."""
    if not can_be_beaten(laid, deal.variant):
        return ()
    if deal.standing.chaos:
        return active_after(deal, seat)
    if gouji:
        return () if parting else _answers_to_gouji(deal, seat)
    return _answers_to_ordinary(deal, seat)


def _answers_to_gouji(deal: Deal, seat: int) -> tuple[int, ...]:
    """R4.6: headless seats between, the opposite even after a pass (R4.3 A), headless seats behind."""
    across = opposite(seat)
    return tuple(
        other
        for other in active_after(deal, seat)
        if (other == across and may_still_answer_gouji(deal.trick, other))
        or (is_headless(deal, other) and other != across and not has(deal.trick.passed, other))
    )


def may_still_answer_gouji(trick: Trick, across: int) -> bool:
    """R4.3 (A), closed in the trick of a last set of the first or second place for all but its opposite (R6.3)."""
    return not trick.closed or has(trick.exempt, across) or not has(trick.passed, across)


def _answers_to_ordinary(deal: Deal, seat: int) -> tuple[int, ...]:
    trick = deal.trick
    queue = tuple(
        other for other in active_after(deal, seat) if not has(trick.passed, other) or has(trick.parting, other)
    )
    return with_last_word(seat, queue) if has_last_word(deal, seat) else queue


def has_last_word(deal: Deal, owner: int) -> bool:
    """R4.3 (B): whether the owner's opposite is asked once more at the end, whatever he said before."""
    if is_headless(deal, owner) or not has(deal.standing.active, opposite(owner)):
        return False
    return not deal.trick.closed or has(deal.trick.exempt, opposite(owner))


def with_last_word(owner: int, queue: tuple[int, ...]) -> tuple[int, ...]:
    """The queue with the opposite at its end, unless he is asked last in his turn anyway (R4.3 B)."""
    across = opposite(owner)
    return queue if queue and queue[-1] == across else (*queue, across)


def without(queue: tuple[int, ...], seat: int) -> tuple[int, ...]:
    """The queue with every question to this seat struck out; no seat is asked twice in a row."""
    left = [other for other in queue if other != seat]
    return tuple(other for at, other in enumerate(left) if at == 0 or left[at - 1] != other)


def burners(deal: Deal, owner: int) -> int:
    """Whom the window on a gouji set asks (R5.1), as a mask."""
    standing = deal.standing
    return standing.active & ~standing.headless & ~deal.trick.passed & ~BIT[owner] & ~BIT[opposite(owner)]


def next_active(deal: Deal, seat: int) -> int | None:
    """The next seat in order of play that is active (R4.1)."""
    active = deal.standing.active
    return next((other for other in AFTER[seat] if active >> other & 1), None)
