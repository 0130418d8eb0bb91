"""The end of a deal in numbers: places, points and debts (R6.8 to R6.10, R8.5, R10).

Law: pure functions of a deal that is decided; nothing is told here.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.rules.events import Debt
from engine.rules.seats import SEATS, from_seat, has, opposite, team
from engine.rules.state import Deal, free_places, is_active
from engine.rules.variant import DebtKind, Declare, Opening, Overturn, SweepTribute, Variant

_TABLE_ONLY_DEBTOR = {(True, False): 0, (True, True): 2, (False, False): 1, (False, True): 3}
_TABLE_ONLY_CREDITOR = {(True, False): 0, (True, True): 0, (False, False): 2, (False, True): 3}
_TABLE_BOTH = {(True, False): 0, (True, True): 2, (False, False): 2, (False, True): 4}
_NOBODY = {(True, False): 0, (True, True): 0, (False, False): 1, (False, True): 1}
_TABLE = {
    (False, False): _NOBODY,
    (True, False): _TABLE_ONLY_DEBTOR,
    (False, True): _TABLE_ONLY_CREDITOR,
    (True, True): _TABLE_BOTH,
}
"""R8.5: (debtor declared, creditor declared) to (debtor opened, creditor opened) to the number of cards."""


def final_places(deal: Deal) -> tuple[int, ...]:
    """Seats from first to last: who is left takes the free places in order of play after the last that went out."""
    standing = deal.standing
    order = from_seat((standing.gone[-1] + 1) % 6 if standing.gone else deal.leader)
    left = [seat for seat in order if is_active(deal, seat)]
    seats = {place: seat for seat, place in enumerate(standing.places) if place}
    seats.update(zip(free_places(deal), left, strict=False))
    return tuple(seats[place] for place in sorted(seats))


def is_sweep(places: tuple[int, ...]) -> bool:
    """Whether one team has places 1, 2 and 3 (R6.9)."""
    return len(places) == 6 and len({team(seat) for seat in places[:3]}) == 1


def points(places: tuple[int, ...], variant: Variant) -> tuple[int, int]:
    """The points of the even and the odd team (R6.9)."""
    if is_sweep(places):
        won = [0, 0]
        won[team(places[0])] = variant.sweep_points
        return won[0], won[1]
    sums = [0, 0]
    for seat, worth in zip(places, variant.place_points, strict=True):
        sums[team(seat)] += worth
    return max(sums[0], 0), max(sums[1], 0)


def is_owed(variant: Variant, kind: DebtKind) -> bool:
    """Whether tribute of this kind is owed at all (R10.2, R10.7); sweep stands and falls with finish."""
    listed = DebtKind.FINISH if kind is DebtKind.SWEEP else kind
    return variant.tribute and listed in variant.tribute_order


def owed_amount(variant: Variant, kind: DebtKind) -> int:
    """One card, or none where the kind is not owed."""
    return int(is_owed(variant, kind))


def burn_amount(variant: Variant, *, counter: bool) -> int:
    """What the victim of a successful burn owes (R10.4)."""
    return owed_amount(variant, DebtKind.BURN) * (variant.counter_burn_multiplier if counter else 1)


def debts(deal: Deal, places: tuple[int, ...]) -> tuple[Debt, ...]:
    """Everything that the deal leaves to be paid (R10.7)."""
    return (*deal.debts_left, *_point_debts(deal), *place_debts(deal.variant, places))


def place_debts(variant: Variant, places: tuple[int, ...]) -> tuple[Debt, ...]:
    """Finish or sweep tribute (R10.3, R10.6)."""
    if not is_owed(variant, DebtKind.FINISH):
        return ()
    if is_sweep(places) and variant.sweep_tribute is not SweepTribute.FINISH:
        opposites = variant.sweep_tribute is SweepTribute.OPPOSITES
        swept = sorted(places[3:]) if opposites else ()
        return tuple(Debt(seat, opposite(seat), DebtKind.SWEEP, 1) for seat in swept)
    pairs = ((places[5], places[0], 2), (places[4], places[1], 1))
    return tuple(
        Debt(payer, payee, DebtKind.FINISH, amount)
        for payer, payee, amount in pairs
        if variant.teammate_tribute or team(payer) != team(payee)
    )


def _point_debts(deal: Deal) -> Iterator[Debt]:
    variant = deal.variant
    if variant.opening is Opening.OFF or not is_owed(variant, DebtKind.POINT):
        return
    for payer in SEATS:
        amount = point_amount(deal, payer)
        if amount:
            yield Debt(payer, opposite(payer), DebtKind.POINT, amount)


def point_amount(deal: Deal, payer: int) -> int:
    """The cards that this seat owes its opposite as point tribute (R8.5)."""
    made, payee = deal.points_of, opposite(payer)
    opened = has(made.opened, payer), has(made.opened, payee)
    declared = has(made.declared, payer), has(made.declared, payee)
    if deal.variant.declare is Declare.CHARTER:
        return _charter_amount(deal, payer)
    return _TABLE[declared][opened]


def _charter_amount(deal: Deal, payer: int) -> int:
    made, payee = deal.points_of, opposite(payer)
    amount = 0
    if not has(made.opened, payer):
        amount = _stake(deal, payee) if has(made.declared, payee) else 1
    if has(made.declared, payer) and has(made.opened, payee):
        amount += _stake(deal, payer) * (2 if deal.variant.overturn is Overturn.DOUBLE else 1)
    return amount


def _stake(deal: Deal, declarer: int) -> int:
    return 4 if has(deal.points_of.declared_before, declarer) else 2
