"""The rules of Gouji: two pure functions over frozen values, `decide` and `evolve`, and what goes with them.

Law: standard library only; no I/O, clock, chance or logging. Start reading at `README.md` in this folder.
"""

from engine.rules.commands import Command, SeatCommand
from engine.rules.dealing import full_deck
from engine.rules.decide import decide, open_deal
from engine.rules.events import DealEvent, Debt, Phase, WindowKind
from engine.rules.evolve import evolve
from engine.rules.legal_moves import LegalMoves, legal_moves
from engine.rules.legality import Reason, Refused
from engine.rules.options import Option, options
from engine.rules.state import Deal, Setup, conserved, is_over, turn, waiting
from engine.rules.variant import RULE_BOOK, VARIANTS, DebtKind, ImpossibleVariant, Variant, resolve, switch_text
from engine.rules.visibility import private_view, public_view, redacted, sees

__all__ = [
    "RULE_BOOK",
    "VARIANTS",
    "Command",
    "Deal",
    "DealEvent",
    "Debt",
    "DebtKind",
    "ImpossibleVariant",
    "LegalMoves",
    "Option",
    "Phase",
    "Reason",
    "Refused",
    "SeatCommand",
    "Setup",
    "Variant",
    "WindowKind",
    "conserved",
    "decide",
    "evolve",
    "full_deck",
    "is_over",
    "legal_moves",
    "open_deal",
    "options",
    "private_view",
    "public_view",
    "redacted",
    "resolve",
    "sees",
    "switch_text",
    "turn",
    "waiting",
]
