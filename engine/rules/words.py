"""Closed vocabularies that events and state share: phases, windows, debts.

Law: words only; they are spelt as in the notation (docs/notation.md).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from engine.rules.variant import DebtKind


class Phase(StrEnum):
    """Where a deal is in its course (R9.5)."""

    DEAL = "deal"
    BUY = "buy"
    TRIBUTE = "tribute"
    REVOLUTION = "revolution"
    DECLARE = "declare"
    DISCARD = "discard"
    PLAY = "play"
    OVER = "over"
    VOID = "void"


class WindowKind(StrEnum):
    """What the asked seats are asked (notation.md, `= window`)."""

    BURN = "burn"
    COUNTER = "counter"
    REVOLUTION = "revolution"
    DECLARE = "declare"
    WINDFALL = "windfall"
    ORDER = "order"


class Debt(NamedTuple):
    """Tribute that one seat owes another in the next deal (R10)."""

    payer: int
    payee: int
    kind: DebtKind
    amount: int
