"""A variant is a value: every switch of the rule book as a field, six named sets of them (R13).

Law: switches, their kinds and the impossible combinations live here; no rule branches on `key`. The whole value is
stored with each deal, so that an old deal replays by the rules that it was played under.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, get_type_hints

from engine.rules.cards import ACE, LETTERS, TEN, TWO, NotCards, face

RULE_BOOK = "1.3"

Ranks = tuple[int, ...]
PerRank = tuple[tuple[int, int], ...]


class FirstLead(StrEnum):
    """Who leads the first trick of a first or re-opened deal (R1.4)."""

    SHOW_THREES = "show_threes"
    FIRST_DRAWER = "first_drawer"
    RANDOM = "random"


class NextLead(StrEnum):
    """Who leads later deals (R1.5)."""

    LAST = "last"
    ROTATE = "rotate"
    FIRST_LEAD = "first_lead"


class Comparison(StrEnum):
    """How two sets of equal count compare (R2.3)."""

    POINTWISE = "pointwise"
    JOKER_FIRST = "joker_first"


class KillBig(StrEnum):
    """Whether two big jokers kill one (R2.4)."""

    NONE = "none"
    TWO_BIG = "two_big"


class LastWord(StrEnum):
    """Whether the opposite is asked again after a pass on the same set (R4.4)."""

    ALWAYS = "always"
    UNLESS_PASSED = "unless_passed"


class IllegalPlay(StrEnum):
    """What becomes of a wrong play (R4.10)."""

    REJECT = "reject"
    LOSE_TURN = "lose_turn"


class BurnCheck(StrEnum):
    """Whether the burner's rest is checked when he declares (R5.4)."""

    STRICT = "strict"
    BLUFF = "bluff"


class CounterBurn(StrEnum):
    """Who may counter-burn (R5.7)."""

    ALL = "all"
    VICTIM = "victim"
    NONE = "none"


class Windfall(StrEnum):
    """Who leads after a last set that nobody beat (R6.2)."""

    NEXT = "next"
    TEAMMATE = "teammate"


class PartingGouji(StrEnum):
    """How long the right of the first places' opposites lasts (R6.3)."""

    TRICK = "trick"
    ONCE = "once"
    NONE = "none"


class PlayOut(StrEnum):
    """When a deal ends (R6.8)."""

    SIDE_OUT = "side_out"
    FIVE_OUT = "five_out"


class Opening(StrEnum):
    """How a seat opens its point (R8)."""

    OFF = "off"
    CHARTER = "charter"
    SEND_FOURS = "send_fours"


class Declare(StrEnum):
    """Whether and how declarations about the opposite count (R8.4)."""

    OFF = "off"
    CHARTER = "charter"
    TABLE = "table"


class Overturn(StrEnum):
    """The price of a declaration that failed (R8.5)."""

    SINGLE = "single"
    DOUBLE = "double"


class BuyOrder(StrEnum):
    """Who is asked to sell first (R9.4)."""

    OPPOSITE_TEAM_NEIGHBOURS = "opposite_team_neighbours"
    OPPOSITE_THEN_HIS_TEAM = "opposite_then_his_team"


class SweepTribute(StrEnum):
    """What the swept pay (R10.6)."""

    NONE = "none"
    OPPOSITES = "opposites"
    FINISH = "finish"


class Report(StrEnum):
    """When the number of cards of a short hand is shown (R11.1)."""

    SHOWN = "shown"
    ON_REQUEST = "on_request"
    OFF = "off"


class Advice(StrEnum):
    """What teammates may see and say (R11.2)."""

    SHOWN = "shown"
    ORDER = "order"
    OFF = "off"


class DebtKind(StrEnum):
    """The kinds of tribute (R10)."""

    POINT = "point"
    BURN = "burn"
    SMOTHER = "smother"
    FINISH = "finish"
    SWEEP = "sweep"


_KINDS = (DebtKind.POINT, DebtKind.BURN, DebtKind.SMOTHER, DebtKind.FINISH)
_MINIMA = ((TEN, 5), (8, 4), (9, 3), (10, 2), (ACE, 2), (TWO, 1))


@dataclass(frozen=True, slots=True)
class Variant:
    """A complete set of switch values; the defaults are `qingdao-charter`."""

    key: str = "qingdao-charter"
    deck: PerRank = ()
    first_lead: FirstLead = FirstLead.SHOW_THREES
    next_lead: NextLead = NextLead.LAST
    comparison: Comparison = Comparison.POINTWISE
    kill_big: KillBig = KillBig.NONE
    gouji_minimum: PerRank = _MINIMA
    twos_count: bool = True
    joker_set_is_gouji: bool = True
    last_word: LastWord = LastWord.ALWAYS
    illegal_play: IllegalPlay = IllegalPlay.REJECT
    decline_is_pass: bool = False
    burn_check: BurnCheck = BurnCheck.STRICT
    counter_burn: CounterBurn = CounterBurn.ALL
    burn_needs_open: bool = False
    windfall: Windfall = Windfall.NEXT
    parting_gouji: PartingGouji = PartingGouji.TRICK
    chaos_after: int = 2
    revolution_counts_for_chaos: bool = False
    windfall_application: bool = False
    play_out: PlayOut = PlayOut.SIDE_OUT
    place_points: tuple[int, ...] = (4, 2, 0, 0, -2, -4)
    sweep_points: int = 12
    swap_last: bool = False
    revolution: bool = True
    opening: Opening = Opening.OFF
    declare: Declare = Declare.OFF
    overturn: Overturn = Overturn.SINGLE
    threes_last: bool = False
    buy: Ranks = ()
    buy_order: BuyOrder = BuyOrder.OPPOSITE_TEAM_NEIGHBOURS
    teammate_sells_free: bool = True
    discard: Ranks = ()
    smother_is_last: bool = False
    tribute: bool = False
    tribute_order: tuple[DebtKind, ...] = _KINDS
    teammate_tribute: bool = False
    counter_burn_multiplier: int = 2
    return_point: bool = False
    sweep_tribute: SweepTribute = SweepTribute.NONE
    report: Report = Report.SHOWN
    report_at: int = 10
    advice: Advice = Advice.SHOWN
    match_deals: int = 4
    match_points: int = 0


SWITCHES: tuple[str, ...] = tuple(field.name for field in fields(Variant) if field.name != "key")


class ImpossibleVariant(ValueError):
    """These switch values cannot be played; the text names the switches."""
