"""A variant is a value: every switch of the rule book as a field, six named sets of them (R13).

Law: switches, their kinds and the impossible combinations live here; no rule branches on `key`. The whole value is
stored with each deal, so that an old deal replays by the rules that it was played under.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, get_type_hints

from engine.rules.cards import ACE, FOUR, LETTERS, TEN, THREE, TWO, NotCards

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


CHARTER = Variant()
_SHANDONG = replace(
    CHARTER,
    key="shandong",
    burn_check=BurnCheck.BLUFF,
    opening=Opening.SEND_FOURS,
    declare=Declare.TABLE,
    threes_last=True,
    buy=(THREE, FOUR),
    tribute=True,
    tribute_order=(DebtKind.SMOTHER, DebtKind.BURN, DebtKind.POINT, DebtKind.FINISH),
    sweep_tribute=SweepTribute.FINISH,
)

VARIANTS: dict[str, Variant] = {
    variant.key: variant
    for variant in (
        CHARTER,
        replace(
            CHARTER,
            key="qingdao-letter",
            illegal_play=IllegalPlay.LOSE_TURN,
            report=Report.ON_REQUEST,
            advice=Advice.ORDER,
            windfall_application=True,
        ),
        replace(
            CHARTER,
            key="qingdao-full",
            opening=Opening.CHARTER,
            declare=Declare.CHARTER,
            threes_last=True,
            buy=(THREE,),
            buy_order=BuyOrder.OPPOSITE_THEN_HIS_TEAM,
            teammate_sells_free=False,
            first_lead=FirstLead.FIRST_DRAWER,
            next_lead=NextLead.ROTATE,
            tribute=True,
            tribute_order=(DebtKind.POINT, DebtKind.FINISH),
            advice=Advice.OFF,
            report=Report.OFF,
        ),
        _SHANDONG,
        replace(
            CHARTER,
            key="barracks",
            opening=Opening.SEND_FOURS,
            declare=Declare.TABLE,
            threes_last=True,
            buy=(THREE, FOUR),
            chaos_after=1,
            tribute=True,
            sweep_tribute=SweepTribute.OPPOSITES,
        ),
        replace(
            _SHANDONG,
            key="jinan",
            deck=((THREE, 10), (FOUR, 8)),
            kill_big=KillBig.TWO_BIG,
            burn_needs_open=True,
            smother_is_last=True,
        ),
    )
}
"""The six named variants (R13)."""


def read(key: str, switches: Mapping[str, str] | None = None) -> Variant:
    """A named variant with `switch=value` overrides as in the notation, whether or not six could play it.

    Raises `ImpossibleVariant` for an unknown name or value.
    """
    if key not in VARIANTS:
        raise ImpossibleVariant(f"no variant is called {key!r}")
    changes = {name: _value(name, text) for name, text in (switches or {}).items()}
    return replace(VARIANTS[key], **changes)


def resolve(key: str, switches: Mapping[str, str] | None = None) -> Variant:
    """As `read`, for a table that is opened: also raises `ImpossibleVariant` for a combination nobody can play."""
    variant = read(key, switches)
    refuse_impossible(variant)
    return variant


def _value(name: str, text: str) -> Any:
    if name not in SWITCHES:
        raise ImpossibleVariant(f"no switch is called {name!r}")
    try:
        return _READERS.get(name, _read_word)(name, text)
    except (ValueError, NotCards, KeyError) as error:
        raise ImpossibleVariant(f"{name}={text!r} is not a value of this switch") from error


_TYPES: dict[str, Any] = get_type_hints(Variant)


def _read_word(name: str, text: str) -> Any:
    kind = _TYPES[name]
    if kind is bool:
        return {"yes": True, "no": False}[text]
    return kind(text)


def _read_ranks(_: str, text: str) -> Ranks:
    return tuple(LETTERS.index(letter.strip()) for letter in _inside(text, "()"))


def _read_points(_: str, text: str) -> tuple[int, ...]:
    points = tuple(int(number) for number in _inside(text, "()"))
    if len(points) != 6:
        raise ValueError(text)
    return points


def _read_per_rank(_: str, text: str) -> PerRank:
    pairs = (pair.split(":") for pair in _inside(text, "{}"))
    return tuple(sorted((LETTERS.index(letter.strip()), int(number)) for letter, number in pairs))


def _read_kinds(_: str, text: str) -> tuple[DebtKind, ...]:
    return tuple(DebtKind(word.strip()) for word in text.split(",") if word.strip())


def _inside(text: str, brackets: str) -> list[str]:
    if not (text.startswith(brackets[0]) and text.endswith(brackets[1])):
        raise ValueError(text)
    return [part for part in text[1:-1].split(",") if part.strip()]


_READERS = {
    "deck": _read_per_rank,
    "gouji_minimum": _read_per_rank,
    "buy": _read_ranks,
    "discard": _read_ranks,
    "place_points": _read_points,
    "tribute_order": _read_kinds,
}


def switch_text(variant: Variant, name: str) -> str:
    """The value of a switch as the notation writes it; `resolve` reads it back."""
    value = getattr(variant, name)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in ("deck", "gouji_minimum"):
        return "{" + ",".join(f"{LETTERS[rank]}:{number}" for rank, number in value) + "}"
    if name in ("buy", "discard"):
        return "(" + ",".join(LETTERS[rank] for rank in value) + ")"
    if name == "place_points":
        return "(" + ",".join(map(str, value)) + ")"
    return ",".join(value) if name == "tribute_order" else str(value)


def differences(variant: Variant, base: Variant = CHARTER) -> dict[str, str]:
    """The switches in which a variant differs from another, as the notation writes them."""
    return {name: switch_text(variant, name) for name in SWITCHES if getattr(variant, name) != getattr(base, name)}


# Impossible combinations


def refuse_impossible(variant: Variant) -> None:
    """Raise `ImpossibleVariant` for the first combination that cannot be played."""
    for check in _CHECKS:
        problem = check(variant)
        if problem:
            raise ImpossibleVariant(problem)


def _deck_exists(variant: Variant) -> str | None:
    for rank, removed in variant.deck:
        if not 0 <= removed <= (4 if rank > TWO else 16):
            return f"deck removes {removed} of {LETTERS[rank]}, which four packs do not hold"
    return None


def _deck_divides(variant: Variant) -> str | None:
    left = 216 - sum(removed for _, removed in variant.deck)
    return None if left > 0 and left % 6 == 0 else f"deck leaves {left} cards, which six seats cannot share"


def _threes_are_kept(variant: Variant) -> str | None:
    if variant.threes_last and THREE in variant.discard:
        return "threes_last and discard: threes that go last cannot be discarded"
    return None


def _discards_low_ranks(variant: Variant) -> str | None:
    odd = [LETTERS[rank] for rank in variant.discard if rank not in (THREE, FOUR)]
    return f"discard: only 3 and 4 can be discarded, not {odd[0]}" if odd else None


def _buys_low_ranks(variant: Variant) -> str | None:
    odd = [LETTERS[rank] for rank in variant.buy if rank not in (THREE, FOUR)]
    return f"buy: only 3 and 4 can be bought, not {odd[0]}" if odd else None


def _chaos_after_someone(variant: Variant) -> str | None:
    return None if 1 <= variant.chaos_after <= 5 else "chaos_after must be 1 to 5"


def _order_is_of_kinds(variant: Variant) -> str | None:
    kinds = variant.tribute_order
    if DebtKind.SWEEP in kinds or len(set(kinds)) != len(kinds):
        return "tribute_order names point, burn, smother and finish at most once each"
    return None


def _minima_rise_from_one(variant: Variant) -> str | None:
    bad = [LETTERS[rank] for rank, least in variant.gouji_minimum if least < 1 or rank > TWO]
    return f"gouji_minimum: {bad[0]} needs a number from 1" if bad else None


def _numbers_are_sane(variant: Variant) -> str | None:
    bounds = (
        ("report_at", 0, 216),
        ("counter_burn_multiplier", 0, 36),
        ("sweep_points", 0, 1000),
        ("match_deals", 0, 1000),
        ("match_points", 0, 100_000),
    )
    for name, least, most in bounds:
        if not least <= getattr(variant, name) <= most:
            return f"{name} must be {least} to {most}"
    return None


def _match_ends(variant: Variant) -> str | None:
    if variant.match_deals == 0 and variant.match_points == 0:
        return "match_deals and match_points: a match needs an end"
    return None


_CHECKS = (
    _deck_exists,
    _deck_divides,
    _threes_are_kept,
    _discards_low_ranks,
    _buys_low_ranks,
    _chaos_after_someone,
    _order_is_of_kinds,
    _minima_rise_from_one,
    _numbers_are_sane,
    _match_ends,
)
