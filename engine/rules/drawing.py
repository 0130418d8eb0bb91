"""A deal drawn in a few lines of text, for people who read failures and replays.

Law: shows everything, hidden cards too; never shown to a player, never logged.
"""

from __future__ import annotations

from engine.rules.cards import letters
from engine.rules.seats import MEMBERS, SEATS, has
from engine.rules.state import Deal, turn


def draw(deal: Deal) -> str:
    """One line for the table and one for each seat."""
    return "\n".join((f"    {_head(deal)}", *(f"    {_seat(deal, seat)}" for seat in SEATS)))


def _head(deal: Deal) -> str:
    trick, window, burn = deal.trick, deal.window, deal.burn
    parts = [f"phase {deal.phase}"]
    if trick.owner is not None:
        parts.append(f"table {trick.owner} {letters(trick.cards)}{' gouji' if trick.gouji else ''}")
        parts.append(f"asked {' '.join(map(str, trick.answers))}")
    if window is not None:
        parts.append(f"window {window.kind} {' '.join(map(str, MEMBERS[window.waiting]))}")
    if burn is not None:
        parts.append(f"burner {burn.burner} victim {burn.victim}")
    if deal.standing.chaos:
        parts.append("chaos")
    return ", ".join((*parts, f"turn {'-' if turn(deal) is None else turn(deal)}"))


def _seat(deal: Deal, seat: int) -> str:
    standing = deal.standing
    marks = [
        word
        for word, mask in (
            ("passed", deal.trick.passed),
            ("headless", standing.headless),
            ("failed", standing.failed),
            ("opened", deal.points_of.opened),
        )
        if has(mask, seat)
    ]
    if standing.places[seat]:
        marks.append(f"place {standing.places[seat]}")
    return f"{seat} {letters(deal.hands[seat]) or '-'} {' '.join(marks)}".rstrip()
