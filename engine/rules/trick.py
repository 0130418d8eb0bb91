"""Tricks: laying a set, answering it, winning the lead (R4), and what follows from each.

Law: what is told here has been found legal before (`legality.py`). Each function tells the facts of one step and hands
on to `settle`, which goes on until somebody has to be asked.
"""

from __future__ import annotations

from engine.rules import advice, burn, going_out, opening
from engine.rules.answering import answers, burners, next_active, with_last_word, without
from engine.rules.cards import Cards, pick
from engine.rules.draft import Draft
from engine.rules.events import (
    Covered,
    Passed,
    Phase,
    SetLaid,
    TrickEnded,
    TurnLost,
    WindowKind,
    WindowOpened,
    Yielded,
)
from engine.rules.seats import MEMBERS, teammates
from engine.rules.sets import CardSet, is_gouji, shape
from engine.rules.state import Deal, is_active, is_burner, is_headless, is_last_word, is_opposite_of_owner
from engine.rules.variant import LastWord, Windfall


def begin_play(draft: Draft) -> None:
    """The first trick of a deal, or the first of a position."""
    going_out.between_tricks(draft)
    settle(draft)


def lay(draft: Draft, seat: int, wish: Cards) -> None:
    """The seat lays a set it may lay: a lead or a beating set (R4.1)."""
    lay_set(draft, seat, wish)
    settle(draft)


def lay_set(draft: Draft, seat: int, wish: Cards) -> None:
    """Everything that one set on the table brings with it, up to the window it opens."""
    before = draft.deal
    laid = shape(wish)
    if laid is None:
        return
    _yield_becomes_a_pass(draft, seat)
    burn.relieve(draft, seat)
    _put_down(draft, seat, pick(before.hands[seat], wish), laid)
    advice.lapse_when_beaten(draft, before.trick.owner)
    opening.after_set(draft, before, seat, laid)
    going_out.smother(draft, before, seat)
    going_out.go_out(draft, seat)
    going_out.fail_smothered(draft, before, seat)
    _open_window(draft, seat, laid)


def _yield_becomes_a_pass(draft: Draft, seat: int) -> None:
    """R4.5: a yield counts as a pass once somebody else beats the set."""
    yielded = draft.deal.trick.yielded
    if yielded is not None and yielded != seat:
        draft.tell(Passed(yielded, ()))


def _put_down(draft: Draft, seat: int, cards: Cards, laid: CardSet) -> None:
    deal = draft.deal
    last = deal.hands[seat] == cards
    gouji = is_gouji_on_table(deal, seat, laid, last=last)
    parting = gouji and going_out.is_parting_gouji(deal, seat)
    asked = answers(going_out.foresee_last_set(deal, seat) if last else deal, seat, laid, gouji=gouji, parting=parting)
    draft.tell(SetLaid(seat, cards, gouji, asked))
    if parting:
        going_out.lay_parting_gouji(draft, seat)


def is_gouji_on_table(deal: Deal, seat: int, laid: CardSet, *, last: bool) -> bool:
    """R3.4, and R5.5: while burning, every set of the burner except his last counts as gouji."""
    if is_burner(deal, seat) and not last:
        return True
    return not deal.standing.chaos and not is_headless(deal, seat) and is_gouji(laid, deal.variant)


def _open_window(draft: Draft, seat: int, laid: CardSet) -> None:
    deal = draft.deal
    if deal.phase is not Phase.PLAY or not deal.trick.gouji or laid.is_dead:
        return
    if is_burner(deal, seat):
        kind, asked = WindowKind.COUNTER, burn.counter_burners(deal)
    else:
        kind, asked = WindowKind.BURN, burners(deal, seat)
    if asked:
        draft.tell(WindowOpened(kind, MEMBERS[asked]))


def pass_by(draft: Draft, seat: int) -> None:
    """The seat passes or covers, whichever its no is (R4.2, R4.4)."""
    _say_no(draft, seat, final=is_final_no(draft.deal, seat))
    settle(draft)


def cover(draft: Draft, seat: int) -> None:
    """The opposite gives up the last word (R4.4)."""
    _say_no(draft, seat, final=True)
    settle(draft)


def _say_no(draft: Draft, seat: int, *, final: bool) -> None:
    queue = draft.deal.trick.answers[1:]
    if final:
        draft.tell(Covered(seat, without(queue, seat)))
    else:
        draft.tell(Passed(seat, queue))


def is_final_no(deal: Deal, seat: int) -> bool:
    """Whether a pass of the seat, asked now, is a cover (R4.4)."""
    if not is_opposite_of_owner(deal, seat):
        return False
    return is_last_word(deal, seat) or deal.variant.last_word is LastWord.UNLESS_PASSED


def yield_to_others(draft: Draft, seat: int) -> None:
    """The opposite lets the seats behind speak first and keeps the last word (R4.5)."""
    trick = draft.deal.trick
    owner = trick.owner
    if owner is not None:
        draft.tell(Yielded(seat, with_last_word(owner, trick.answers[1:])))
    settle(draft)


def lose_turn(draft: Draft, seat: int) -> None:
    """R4.10: a pass, a cover where only that is left; a lead goes to the next active seat, a burn ends."""
    burn.end_without_debts(draft, seat)
    if draft.deal.trick.owner is not None:
        draft.tell(TurnLost(seat, None))
        _say_no(draft, seat, final=is_final_no(draft.deal, seat))
        return
    draft.tell(TurnLost(seat, next_active(draft.deal, seat)))
    advice.lapse(draft, seat)
    going_out.between_tricks(draft)


def settle(draft: Draft) -> None:
    """Go on until a seat or a window has to be asked, or the deal is over."""
    while draft.deal.phase is Phase.PLAY and draft.deal.window is None:
        trick = draft.deal.trick
        if trick.owner is None:
            if not _lead_goes_on(draft):
                return
        elif not trick.answers:
            end_trick(draft)
        elif draft.deal.house.forfeits[trick.answers[0]]:
            lose_turn(draft, trick.answers[0])
        else:
            return


def _lead_goes_on(draft: Draft) -> bool:
    """Whether the lead went on without asking the leader: forfeited (R12), a false burn (R5.8), an order (R11.2)."""
    deal = draft.deal
    if deal.house.forfeits[deal.leader]:
        lose_turn(draft, deal.leader)
    elif burn.must_fail(deal):
        burn.fail(draft)
    elif deal.advice.ordering == deal.leader and deal.advice.order:
        lay_set(draft, deal.leader, deal.advice.order[0])
    else:
        return False
    return True


def end_trick(draft: Draft, leader: int | None = None) -> None:
    """Nobody is left to act: the owner of the set wins the lead (R4.9); `leader` by a granted windfall (R6.6)."""
    before = draft.deal
    owner = before.trick.owner
    if owner is None:
        return
    draft.tell(TrickEnded(owner, _winner_leads(before, owner) if leader is None else leader))
    opening.after_trick(draft, before, owner)
    going_out.between_tricks(draft)


def _winner_leads(deal: Deal, owner: int) -> int | None:
    """The winner, or by the windfall who leads for him (R6.2)."""
    if is_active(deal, owner):
        return owner
    if deal.variant.windfall is Windfall.TEAMMATE:
        for mate in teammates(owner):
            if is_active(deal, mate):
                return mate
    return next_active(deal, owner)
