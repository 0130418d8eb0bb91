"""The evening as a table for people.

Law: reads results out of exported deals (`= places`, `= points`); computes nothing.
"""

from __future__ import annotations

from rich.table import Table

from services.cli.demo.evening import PLAYERS, Evening


def table_of(evening: Evening) -> Table:
    """One line for each player: seat, place in each deal, points, rating."""
    deals = range(1, len(evening.deals) + 1)
    table = Table("seat", "player", *(f"place {deal}" for deal in deals), "points", "rating", box=None, pad_edge=False)
    places = [places_of(deal) for deal in evening.deals]
    for player in sorted(PLAYERS, key=lambda one: evening.seats[one]):
        seat = evening.seats[player]
        won = [str(order.index(seat) + 1) if seat in order else "-" for order in places]
        table.add_row(str(seat), player, *won, str(evening.points[seat]), str(evening.ratings[player].rating))
    return table


def places_of(deal: str) -> list[int]:
    """The seats of an exported deal in the order of their places."""
    for line in deal.splitlines():
        if line.startswith("= places "):
            return [int(word) for word in line.split("#")[0].split()[2:]]
    return []
