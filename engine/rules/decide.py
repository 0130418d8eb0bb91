"""`decide(deal, command) -> events | Refused`: the one door into the rules.

Law: a command is judged by `legality`, then acted on; all decisions are in the events. Each command has one entry in
`ACTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.rules import advice, burn, buying, course, going_out, scoring, tribute, trick, windows
from engine.rules import commands as c
from engine.rules import events as e
from engine.rules.answering import next_active
from engine.rules.draft import Draft
from engine.rules.legality import Refused, costs_the_turn, refusal
from engine.rules.moves import stand_in
from engine.rules.seats import MEMBERS
from engine.rules.state import Deal, Setup


def open_deal(setup: Setup) -> Deal:
    """A deal that has not begun; its first command is `Begin`."""
    return Deal(setup)


def decide(deal: Deal, command: c.Command) -> tuple[e.DealEvent, ...] | Refused:
    """What the command brings about, or why it is refused, in which case nothing changes."""
    reason = refusal(deal, command)
    if reason is None:
        draft = Draft(deal)
        ACTS[type(command)](draft, command)
        return tuple(draft.events)
    if costs_the_turn(deal, command, reason) and isinstance(command, c.Lay):
        return _lost_turn(deal, command.seat)
    return Refused(reason)


def _lost_turn(deal: Deal, seat: int) -> tuple[e.DealEvent, ...]:
    draft = Draft(deal)
    trick.lose_turn(draft, seat)
    trick.settle(draft)
    return tuple(draft.events)


def _act(draft: Draft, command: c.Command) -> None:
    ACTS[type(command)](draft, command)


def _begin(draft: Draft, _: c.Begin) -> None:
    course.begin(draft)


# Tricks


def _lay(draft: Draft, command: c.Lay) -> None:
    if burn.is_false(draft.deal, command.seat, command.cards):
        burn.fail(draft)
        trick.settle(draft)
    else:
        trick.lay(draft, command.seat, command.cards)


def _pass(draft: Draft, command: c.Pass) -> None:
    trick.pass_by(draft, command.seat)


def _cover(draft: Draft, command: c.Cover) -> None:
    trick.cover(draft, command.seat)


def _yield(draft: Draft, command: c.Yield) -> None:
    trick.yield_to_others(draft, command.seat)


def _renounce(draft: Draft, command: c.Renounce) -> None:
    draft.tell(e.PartingGoujiRenounced(command.seat))
    if draft.deal.trick.owner is None:
        going_out.between_tricks(draft)


def _apply(draft: Draft, command: c.Apply) -> None:
    draft.tell(e.WindfallApplied(command.seat))
    asked = draft.deal.standing.active & ~(1 << command.seat)
    draft.tell(e.WindowOpened(e.WindowKind.WINDFALL, MEMBERS[asked]))


# Windows


def _burn(draft: Draft, command: c.Burn) -> None:
    windows.answer(draft, command.seat, yes=True, cards=command.cards)


def _yes(draft: Draft, command: c.Revolt | c.Declare) -> None:
    windows.answer(draft, command.seat, yes=True)


def _no(draft: Draft, command: c.Decline | c.Refuse | c.Stay | c.Silent) -> None:
    windows.answer(draft, command.seat, yes=False)


def _agree(draft: Draft, command: c.Agree) -> None:
    if draft.deal.phase is e.Phase.OVER:
        _exchange_places(draft)
    else:
        windows.answer(draft, command.seat, yes=True)


def _order(draft: Draft, command: c.Order) -> None:
    windows.give_order(draft, command.seat, command.sets)


# Before play


def _buy(draft: Draft, command: c.Buy) -> None:
    buying.buy(draft, command.seat, command.rank)
    _after_purchase(draft)


def _buy_nothing(draft: Draft, command: c.No) -> None:
    buying.decline(draft, command.seat)
    _after_purchase(draft)


def _after_purchase(draft: Draft) -> None:
    if not buying.offer_next(draft):
        course.go_on(draft, e.Phase.BUY)


def _return(draft: Draft, command: c.Return) -> None:
    tribute.give_back(draft, command.seat, command.cards)
    if not tribute.pay_on(draft):
        course.go_on(draft, e.Phase.TRIBUTE)


def _discard(draft: Draft, command: c.Discard) -> None:
    buying.discard(draft, command.seat, command.ranks)
    course.go_on(draft, e.Phase.DISCARD)


def _keep(draft: Draft, command: c.Keep) -> None:
    buying.keep(draft, command.seat)
    course.go_on(draft, e.Phase.DISCARD)


# Advice


def _consult(draft: Draft, command: c.Consult) -> None:
    draft.tell(e.Consulted(command.seat, command.teammate))


def _suggest(draft: Draft, command: c.Suggest) -> None:
    draft.tell(e.Suggested(command.seat, command.to, command.cards))


def _ask(draft: Draft, command: c.Ask) -> None:
    draft.tell(e.CountAsked(command.seat, command.of, advice.is_short(draft.deal, command.of)))


def _hand_over(draft: Draft, command: c.HandOver) -> None:
    teammate = advice.adviser(draft.deal, command.seat)
    draft.tell(e.OrderAsked(command.seat, teammate))
    draft.tell(e.WindowOpened(e.WindowKind.ORDER, (teammate,)))


# After the deal


def _swap(draft: Draft, command: c.Swap) -> None:
    draft.tell(e.SwapProposed(command.seat))


def _exchange_places(draft: Draft) -> None:
    deal = draft.deal
    places = (*deal.places[:4], deal.places[5], deal.places[4])
    kept = tuple(debt for debt in deal.debts_left if debt not in scoring.place_debts(deal.variant, deal.places))
    draft.tell(e.PlacesSwapped(places, (*kept, *scoring.place_debts(deal.variant, places))))


# The house


def _time_out(draft: Draft, command: c.TimeOut) -> None:
    instead = stand_in(draft.deal, command.seat)
    draft.tell(e.TimedOut(command.seat))
    _act(draft, instead)


def _warn(draft: Draft, command: c.Warn) -> None:
    draft.tell(e.Warned(command.seat, command.reason))


def _forfeit(draft: Draft, command: c.Forfeit) -> None:
    draft.tell(e.Forfeited(command.seat, command.reason))
    trick.settle(draft)


def _dock(draft: Draft, command: c.Dock) -> None:
    draft.tell(e.PointsDocked(command.seat, command.points, command.reason))


def _judge_last(draft: Draft, command: c.JudgeLast) -> None:
    seat = command.seat
    draft.tell(e.JudgedLast(seat, command.reason))
    burn.end_without_debts(draft, seat)
    windows.forget_order(draft, seat)
    leads = draft.deal.trick.owner is None and draft.deal.leader == seat
    going_out.fail(draft, seat, next_active(draft.deal, seat) if leads else None)
    if draft.deal.trick.owner is None:
        going_out.between_tricks(draft)
    windows.close_if_answered(draft)
    trick.settle(draft)


def _disqualify(draft: Draft, command: c.Disqualify) -> None:
    draft.tell(e.Disqualified(command.seat, command.reason))


ACTS: dict[type, Callable[[Draft, Any], None]] = {
    c.Begin: _begin,
    c.Lay: _lay,
    c.Pass: _pass,
    c.Cover: _cover,
    c.Yield: _yield,
    c.Burn: _burn,
    c.Decline: _no,
    c.Apply: _apply,
    c.Agree: _agree,
    c.Refuse: _no,
    c.Revolt: _yes,
    c.Stay: _no,
    c.Renounce: _renounce,
    c.Declare: _yes,
    c.Silent: _no,
    c.Buy: _buy,
    c.No: _buy_nothing,
    c.Discard: _discard,
    c.Keep: _keep,
    c.Return: _return,
    c.Consult: _consult,
    c.Suggest: _suggest,
    c.HandOver: _hand_over,
    c.Order: _order,
    c.Swap: _swap,
    c.Ask: _ask,
    c.TimeOut: _time_out,
    c.Warn: _warn,
    c.Forfeit: _forfeit,
    c.Dock: _dock,
    c.JudgeLast: _judge_last,
    c.Disqualify: _disqualify,
}
