"""Why a command is refused (notation.md, "Refusal reasons").

Law: pure rules, each a small function that returns one `Reason` or None; `refusal` gives the first that applies, in the
order: phase and deal over, out, window, turn, shape of the set, hand, threes, rights, count, height. What an accepted
command brings about is told elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.rules import advice, burn, buying, tribute
from engine.rules import commands as c
from engine.rules.answering import next_active
from engine.rules.cards import THREE, Cards, holds, pick, size
from engine.rules.events import Phase, WindowKind
from engine.rules.seats import SEATS, has
from engine.rules.sets import CardSet, beats, shape, stands_alone
from engine.rules.state import Deal, is_active, is_burner, is_opposite_of_owner, turn
from engine.rules.variant import BurnCheck, IllegalPlay, KillBig, Opening


class Reason(StrEnum):
    """Why the rules said no, as a sentence."""

    NOT_YOUR_TURN = "It is not your turn."
    NOT_A_SET = "These cards are not one set."
    NOT_IN_HAND = "You do not hold these cards."
    WRONG_COUNT = "The number of cards is wrong."
    NOT_HIGHER = "The set is not higher at every position."
    MUST_LEAD = "The leader must lay a set."
    ONLY_THE_OPPOSITE_ANSWERS = "Only the opposite answers a gouji set."
    ALREADY_PASSED = "You have passed for this trick."
    ALREADY_OUT = "You take no part in this deal any more."
    WINDOW_OPEN = "A question is open that must be answered first."
    NO_WINDOW = "No such question is open."
    NOT_ASKED = "You are not asked, or have answered already."
    DOES_NOT_COVER = "The set does not beat the one it should cover."
    BURN_NEEDS_JOKERS = "Too few jokers would be left for a burn."
    BURN_NEEDS_OPENING = "Only a seat that has opened may burn."
    BURN_IS_RUNNING = "Only the burner's opposite and headless seats act while a burn runs."
    NO_YIELD_HERE = "Nobody can yield here."
    NOTHING_TO_COVER = "Only the opposite of the set's owner covers."
    THREES_GO_LAST = "Threes are led last, all at once."
    THREES_STAND_ALONE = "Nothing may be attached to threes."
    MAY_NOT_REVOLT = "This hand may not revolt."
    MAY_NOT_DECLARE = "You may not declare here."
    NOT_ON_OFFER = "That is not on offer."
    DOES_NOT_FIT = "As many cards as can must fit the payer's ranks."
    EATEN_CARD = "A card received as tribute is not returned."
    NO_PARTING_GOUJI = "You have no parting gouji to renounce."
    NO_APPLICATION_HERE = "Nobody can apply for the windfall here."
    NO_ADVICE_HERE = "This advice is not allowed here."
    DEAL_OVER = "The deal is over."
    WRONG_PHASE = "This belongs to another phase of the deal."


@dataclass(frozen=True, slots=True)
class Refused:
    """The command changed nothing, for this reason."""

    reason: Reason


LOSES_THE_TURN = frozenset(
    {
        Reason.NOT_A_SET,
        Reason.WRONG_COUNT,
        Reason.NOT_HIGHER,
        Reason.THREES_GO_LAST,
        Reason.THREES_STAND_ALONE,
    }
)

Rule = Callable[[Deal, Any], Reason | None]

_PHASES: dict[type, tuple[Phase, ...]] = {
    c.Revolt: (Phase.REVOLUTION,),
    c.Stay: (Phase.REVOLUTION,),
    c.Declare: (Phase.DEAL, Phase.DECLARE),
    c.Silent: (Phase.DEAL, Phase.DECLARE),
    c.Buy: (Phase.BUY,),
    c.No: (Phase.BUY,),
    c.Discard: (Phase.DISCARD,),
    c.Keep: (Phase.DISCARD,),
    c.Return: (Phase.TRIBUTE,),
    c.Swap: (Phase.OVER,),
    c.Begin: (Phase.DEAL,),
}
_PLAY = (Phase.PLAY,)

_WINDOWS: dict[type, tuple[WindowKind, ...]] = {
    c.Burn: (WindowKind.BURN, WindowKind.COUNTER),
    c.Decline: (WindowKind.BURN, WindowKind.COUNTER, WindowKind.ORDER),
    c.Agree: (WindowKind.WINDFALL,),
    c.Refuse: (WindowKind.WINDFALL,),
    c.Order: (WindowKind.ORDER,),
    c.Revolt: (WindowKind.REVOLUTION,),
    c.Stay: (WindowKind.REVOLUTION,),
    c.Declare: (WindowKind.DECLARE,),
    c.Silent: (WindowKind.DECLARE,),
}


def refusal(deal: Deal, command: c.Command) -> Reason | None:
    """The first reason against this command, or None when it is accepted as it stands."""
    for rule in RULES[type(command)]:
        if (reason := rule(deal, command)) is not None:
            return reason
    return None


def costs_the_turn(deal: Deal, command: c.Command, reason: Reason) -> bool:
    """R4.10: whether a refused play is accepted as a lost turn instead."""
    if deal.variant.illegal_play is IllegalPlay.REJECT or not isinstance(command, c.Lay):
        return False
    return reason in LOSES_THE_TURN and turn(deal) == command.seat


# Phase, out, window, turn


def in_its_phase(deal: Deal, command: c.Command) -> Reason | None:
    """The deal still runs, and is where this command belongs."""
    allowed = _PHASES.get(type(command), _PLAY)
    if deal.phase in allowed:
        return None
    return Reason.DEAL_OVER if deal.phase in (Phase.OVER, Phase.VOID) else Reason.WRONG_PHASE


def still_running(deal: Deal, _: c.Command) -> Reason | None:
    """R12: penalties end with the deal."""
    return Reason.DEAL_OVER if deal.phase in (Phase.OVER, Phase.VOID) else None


def in_play_only(deal: Deal, _: c.Command) -> Reason | None:
    """R12: judging last is for play."""
    return None if deal.phase is Phase.PLAY else Reason.WRONG_PHASE


def takes_part(deal: Deal, command: c.SeatCommand) -> Reason | None:
    """R4.1: only active seats act, and who is asked for an order though he is out (R11.2)."""
    if is_active(deal, command.seat) or is_asked(deal, command.seat):
        return None
    return Reason.ALREADY_OUT


def is_asked(deal: Deal, seat: int) -> bool:
    """Whether an open window waits for this seat."""
    return deal.window is not None and has(deal.window.waiting, seat)


def no_window_open(deal: Deal, _: c.Command) -> Reason | None:
    """Nothing else is done while a window is open."""
    return Reason.WINDOW_OPEN if deal.window is not None else None


def its_window_is_open(deal: Deal, command: c.SeatCommand) -> Reason | None:
    """An answer needs its question."""
    if deal.window is None:
        return Reason.NO_WINDOW
    return None if deal.window.kind in _WINDOWS[type(command)] else Reason.WINDOW_OPEN


def is_asked_there(deal: Deal, command: c.SeatCommand) -> Reason | None:
    """R5.1: only who is asked answers, and once."""
    return None if is_asked(deal, command.seat) else Reason.NOT_ASKED


def is_its_turn(deal: Deal, command: c.SeatCommand) -> Reason | None:
    """The seat alone is to act."""
    return None if turn(deal) == command.seat else Reason.NOT_YOUR_TURN


def leads_or_may_be_asked(deal: Deal, command: c.SeatCommand) -> Reason | None:
    """Leads, or is asked now, or cannot be asked about this set any more (which later rules name)."""
    trick, seat = deal.trick, command.seat
    if trick.owner is None:
        return None if deal.leader == seat else Reason.NOT_YOUR_TURN
    if trick.answers[:1] == (seat,):
        return None
    later = seat == trick.owner or deal.standing.chaos or seat in trick.answers
    return Reason.NOT_YOUR_TURN if later else None


def may_answer_this_set(deal: Deal, command: c.SeatCommand) -> Reason | None:
    """R4.3, R4.6, R5.5: why a seat cannot be asked about the set on the table any more."""
    trick, seat = deal.trick, command.seat
    if trick.owner is None or trick.answers[:1] == (seat,):
        return None
    if has(trick.passed, seat):
        return Reason.ALREADY_PASSED
    return Reason.BURN_IS_RUNNING if is_burner(deal, trick.owner) else Reason.ONLY_THE_OPPOSITE_ANSWERS


def does_not_lead(deal: Deal, _: c.SeatCommand) -> Reason | None:
    """R4.1: no pass on a lead."""
    return Reason.MUST_LEAD if deal.trick.owner is None else None


# Sets

SetCommand = c.Lay | c.Burn | c.Suggest


def is_a_set(_: Deal, command: SetCommand) -> Reason | None:
    """R2.1."""
    return Reason.NOT_A_SET if shape(command.cards) is None else None


def holds_the_cards(deal: Deal, command: c.Lay | c.Burn | c.Return) -> Reason | None:
    """The cards are in the hand, by rank."""
    return None if holds(deal.hands[command.seat], command.cards) else Reason.NOT_IN_HAND


def threes_stand_alone(deal: Deal, command: SetCommand) -> Reason | None:
    """R2.5, R9.1."""
    laid = shape(command.cards)
    if laid is None or not deal.variant.threes_last or stands_alone(laid):
        return None
    return Reason.THREES_STAND_ALONE


def threes_go_last(deal: Deal, command: c.Lay | c.Burn) -> Reason | None:
    """R9.1: 3s are only led, all at once, as the last set."""
    laid = shape(command.cards)
    if laid is None or not deal.variant.threes_last or laid.base != THREE:
        return None
    leads = deal.trick.owner is None
    return None if leads and size(deal.hands[command.seat]) == laid.size else Reason.THREES_GO_LAST


def lead_keeps_the_burn(deal: Deal, command: c.Lay) -> Reason | None:
    """R5.4, R5.5: a strict burner's lead."""
    if deal.variant.burn_check is not BurnCheck.STRICT or not is_burner(deal, command.seat):
        return None
    broken = burn.lead_breaks_condition(deal, command.seat, command.cards)
    return Reason.BURN_NEEDS_JOKERS if broken else None


def _table(deal: Deal) -> CardSet | None:
    return None if deal.trick.owner is None else shape(deal.trick.cards)


def has_the_count(deal: Deal, command: c.Lay) -> Reason | None:
    """R2.2: as many cards as on the table, or as R2.4 asks to kill big jokers."""
    table, laid = _table(deal), shape(command.cards)
    if table is None or laid is None or laid.size == table.size:
        return None
    kills = deal.variant.kill_big is KillBig.TWO_BIG and table.bigs > 0
    return (
        None if kills and laid.size == table.size + table.bigs and laid.bigs == 2 * table.bigs else Reason.WRONG_COUNT
    )


def is_higher(deal: Deal, command: c.Lay) -> Reason | None:
    """R2.2 to R2.4."""
    table, laid = _table(deal), shape(command.cards)
    if table is None or laid is None or beats(laid, table, deal.variant):
        return None
    return Reason.NOT_HIGHER


# Answers other than sets


def may_yield(deal: Deal, command: c.Yield) -> Reason | None:
    """R4.5."""
    trick, seat = deal.trick, command.seat
    behind = any(other != seat for other in trick.answers[1:])
    if trick.gouji or not behind or not is_opposite_of_owner(deal, seat):
        return Reason.NO_YIELD_HERE
    return None


def may_cover(deal: Deal, command: c.Cover) -> Reason | None:
    """R4.4."""
    return None if is_opposite_of_owner(deal, command.seat) else Reason.NOTHING_TO_COVER


def may_apply(deal: Deal, command: c.Apply) -> Reason | None:
    """R6.6: the next active seat after one that just went out, on that last set, once."""
    owner = deal.trick.owner
    allowed = deal.variant.windfall_application and owner is not None and deal.trick.applied is None
    if not allowed or owner is None or owner not in deal.standing.gone:
        return Reason.NO_APPLICATION_HERE
    return None if next_active(deal, owner) == command.seat else Reason.NO_APPLICATION_HERE


def has_parting_gouji(deal: Deal, command: c.Renounce) -> Reason | None:
    """R6.3, R7.4: only a right that outlasts the trick can be renounced."""
    return None if deal.standing.parting_gouji[command.seat] else Reason.NO_PARTING_GOUJI


# Burning


def has_opened(deal: Deal, command: c.Burn) -> Reason | None:
    """R5.10."""
    if not deal.variant.burn_needs_open or deal.variant.opening is Opening.OFF:
        return None
    return None if has(deal.points_of.opened, command.seat) else Reason.BURN_NEEDS_OPENING


def has_the_jokers(deal: Deal, command: c.Burn) -> Reason | None:
    """R5.4, `burn_check=strict`."""
    if deal.variant.burn_check is not BurnCheck.STRICT:
        return None
    rest = burn.rest_after(deal, command.seat, command.cards)
    kept = burn.keeps_condition(rest, threes_last=deal.variant.threes_last)
    return None if kept else Reason.BURN_NEEDS_JOKERS


def covers(deal: Deal, command: c.Burn) -> Reason | None:
    """R5.4: the covering set beats the table."""
    table, laid = _table(deal), shape(command.cards)
    if table is None or laid is None or beats(laid, table, deal.variant):
        return None
    return Reason.DOES_NOT_COVER


# Before play


def may_revolt(deal: Deal, command: c.Revolt) -> Reason | None:
    """R7.1."""
    return None if tribute.may_revolt(deal, command.seat) else Reason.MAY_NOT_REVOLT


def may_declare(deal: Deal, command: c.Declare) -> Reason | None:
    """R8.4: the revolter, his opposite and who declared before the deal may not."""
    window = deal.window
    if window is None:
        return Reason.NO_WINDOW
    return None if has(window.asked, command.seat) else Reason.MAY_NOT_DECLARE


def is_for_sale(deal: Deal, command: c.Buy) -> Reason | None:
    """R9.2: the rank that is offered now."""
    return None if deal.preparation.offer == (command.seat, command.rank) else Reason.NOT_ON_OFFER


def may_decline_to_buy(deal: Deal, _: c.No) -> Reason | None:
    """R9.2: a 3 must be bought."""
    return None if buying.may_be_declined(deal) else Reason.NOT_ON_OFFER


def may_be_discarded(deal: Deal, command: c.Discard) -> Reason | None:
    """R9.6."""
    return None if buying.may_discard(deal, command.ranks) else Reason.NOT_ON_OFFER


def is_not_eaten(deal: Deal, command: c.Return) -> Reason | None:
    """R10.1."""
    own = Cards(deal.hands[command.seat] - deal.preparation.eaten[command.seat])
    return None if holds(own, command.cards) else Reason.EATEN_CARD


def returns_as_many(deal: Deal, command: c.Return) -> Reason | None:
    """R10.3: as many as he got."""
    return None if size(command.cards) == deal.preparation.returns[0][2] else Reason.WRONG_COUNT


def returns_what_fits(deal: Deal, command: c.Return) -> Reason | None:
    """R10.3, R9.8."""
    return None if tribute.fits(deal, command.cards) else Reason.DOES_NOT_FIT


# Advice


def may_consult(deal: Deal, command: c.Consult) -> Reason | None:
    """R11.2."""
    return None if advice.may_consult(deal, command.seat, command.teammate) else Reason.NO_ADVICE_HERE


def may_suggest(deal: Deal, command: c.Suggest) -> Reason | None:
    """R11.2. Asked before the hand is looked at, so that a refusal tells no enemy what is held."""
    return None if advice.may_suggest(deal, command.seat, command.to) else Reason.NO_ADVICE_HERE


def suggests_held_cards(deal: Deal, command: c.Suggest) -> Reason | None:
    """The teammate holds the suggested set."""
    return None if holds(deal.hands[command.to], command.cards) else Reason.NOT_IN_HAND


def may_ask(deal: Deal, command: c.Ask) -> Reason | None:
    """R11.1."""
    return None if advice.may_ask(deal) and command.of in SEATS else Reason.NO_ADVICE_HERE


def may_hand_over(deal: Deal, command: c.HandOver) -> Reason | None:
    """R11.2."""
    return None if advice.may_hand_over(deal, command.seat) else Reason.NO_ADVICE_HERE


def orders_sets(deal: Deal, command: c.Order) -> Reason | None:
    """Every ordered set is one, 3s standing alone where they go last."""
    for cards in command.sets:
        laid = shape(cards)
        if laid is None:
            return Reason.NOT_A_SET
        if deal.variant.threes_last and not stands_alone(laid):
            return Reason.THREES_STAND_ALONE
    return None


def orders_held_cards(deal: Deal, command: c.Order) -> Reason | None:
    """All sets together are held: taken one by one, since a sum of many could outgrow what `Cards` counts."""
    rest = advice.hand_to_order(deal)
    for cards in command.sets:
        if not holds(rest, cards):
            return Reason.NOT_IN_HAND
        rest = Cards(rest - pick(rest, cards))
    return None


def orders_threes_last(deal: Deal, command: c.Order) -> Reason | None:
    """R9.1: all 3s in the last set."""
    if not deal.variant.threes_last:
        return None
    early = any((laid := shape(cards)) and laid.base == THREE for cards in command.sets[:-1])
    return Reason.THREES_GO_LAST if early else None


def orders_the_whole_hand(deal: Deal, command: c.Order) -> Reason | None:
    """R11.2: nothing is left over."""
    return None if size(Cards(sum(command.sets))) == size(advice.hand_to_order(deal)) else Reason.WRONG_COUNT


# After the deal, the house


def may_swap(deal: Deal, command: c.Swap) -> Reason | None:
    """R6.10: fifth or last, of one team, nothing proposed yet."""
    result = deal.result
    proposes = _may_exchange(deal) and result.swap_proposer is None and command.seat in result.places[4:]
    return None if proposes else Reason.DEAL_OVER


def may_agree_to_swap(deal: Deal, command: c.Agree) -> Reason | None:
    """R6.10: the other of the two agrees. During play `agree` answers an application."""
    if deal.phase is not Phase.OVER:
        return None
    proposer = deal.result.swap_proposer
    other = proposer is not None and command.seat != proposer and command.seat in deal.result.places[4:]
    return None if other and _may_exchange(deal) else Reason.DEAL_OVER


def _may_exchange(deal: Deal) -> bool:
    fifth_and_last = deal.result.places[4:]
    same_team = len({seat % 2 for seat in fifth_and_last}) == 1
    return deal.variant.swap_last and not deal.result.swapped and same_team


def time_was_running(deal: Deal, command: c.TimeOut) -> Reason | None:
    """R4.11: only who is waited for runs out of time."""
    if deal.window is not None:
        return None if is_asked(deal, command.seat) else Reason.NOT_ASKED
    return None if turn(deal) == command.seat else Reason.NOT_YOUR_TURN


def _agrees(deal: Deal, command: c.Agree) -> Reason | None:
    if deal.phase is Phase.OVER:
        return may_agree_to_swap(deal, command)
    for rule in (in_its_phase, *_ANSWER):
        if (reason := rule(deal, command)) is not None:
            return reason
    return None


_ANSWER: tuple[Rule, ...] = (takes_part, its_window_is_open, is_asked_there)
_ANSWERS_A_QUESTION: tuple[Rule, ...] = (in_its_phase, *_ANSWER)
_SPEAKS: tuple[Rule, ...] = (in_its_phase, takes_part, no_window_open, leads_or_may_be_asked)
_ACTS: tuple[Rule, ...] = (in_its_phase, takes_part, no_window_open, is_its_turn)

RULES: dict[type, tuple[Rule, ...]] = {
    c.Begin: (in_its_phase, no_window_open),
    c.Lay: (
        *_SPEAKS,
        is_a_set,
        holds_the_cards,
        threes_stand_alone,
        threes_go_last,
        may_answer_this_set,
        lead_keeps_the_burn,
        has_the_count,
        is_higher,
    ),
    c.Pass: (*_SPEAKS, does_not_lead, may_answer_this_set),
    c.Cover: (*_SPEAKS, does_not_lead, may_answer_this_set, may_cover),
    c.Yield: (*_SPEAKS, does_not_lead, may_answer_this_set, may_yield),
    c.Burn: (
        *_ANSWERS_A_QUESTION,
        is_a_set,
        holds_the_cards,
        threes_stand_alone,
        threes_go_last,
        has_opened,
        has_the_jokers,
        covers,
    ),
    c.Decline: _ANSWERS_A_QUESTION,
    c.Apply: (*_SPEAKS, may_answer_this_set, may_apply),
    c.Agree: (_agrees,),
    c.Refuse: _ANSWERS_A_QUESTION,
    c.Revolt: (*_ANSWERS_A_QUESTION, may_revolt),
    c.Stay: _ANSWERS_A_QUESTION,
    c.Renounce: (in_its_phase, takes_part, no_window_open, has_parting_gouji),
    c.Declare: (in_its_phase, takes_part, its_window_is_open, may_declare, is_asked_there),
    c.Silent: _ANSWERS_A_QUESTION,
    c.Buy: (*_ACTS, is_for_sale),
    c.No: (*_ACTS, may_decline_to_buy),
    c.Discard: (*_ACTS, may_be_discarded),
    c.Keep: _ACTS,
    c.Return: (*_ACTS, holds_the_cards, is_not_eaten, returns_as_many, returns_what_fits),
    c.Consult: (in_its_phase, no_window_open, may_consult),
    c.Suggest: (in_its_phase, no_window_open, is_a_set, may_suggest, suggests_held_cards, threes_stand_alone),
    c.HandOver: (*_ACTS, may_hand_over),
    c.Order: (*_ANSWERS_A_QUESTION, orders_sets, orders_held_cards, orders_threes_last, orders_the_whole_hand),
    c.Swap: (in_its_phase, may_swap),
    c.Ask: (in_its_phase, no_window_open, may_ask),
    c.TimeOut: (still_running, takes_part, time_was_running),
    c.Warn: (still_running,),
    c.Forfeit: (still_running, takes_part),
    c.Dock: (still_running,),
    c.JudgeLast: (still_running, in_play_only, takes_part),
    c.Disqualify: (still_running,),
}
