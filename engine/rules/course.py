"""The course of a deal from phase to phase (R9.5).

Law: phases begin here, in one order with buying and another without; what happens inside a phase is told elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.rules import buying, tribute, trick
from engine.rules.answering import next_active
from engine.rules.dealing import deal
from engine.rules.draft import Draft
from engine.rules.events import Phase, PhaseBegan, WindowKind, WindowOpened
from engine.rules.seats import EVERYBODY, MEMBERS, NOBODY, mask_of, opposite
from engine.rules.state import Deal, is_active
from engine.rules.variant import Declare, Opening, Variant

_WITH_BUYING = (
    Phase.DEAL,
    Phase.REVOLUTION,
    Phase.BUY,
    Phase.TRIBUTE,
    Phase.DECLARE,
    Phase.DISCARD,
    Phase.PLAY,
)
_WITHOUT_BUYING = (
    Phase.DEAL,
    Phase.BUY,
    Phase.TRIBUTE,
    Phase.REVOLUTION,
    Phase.DECLARE,
    Phase.DISCARD,
    Phase.PLAY,
)


def order(variant: Variant) -> tuple[Phase, ...]:
    """The phases of a deal in their order; a phase with nothing to ask is passed over."""
    return _WITH_BUYING if variant.buy else _WITHOUT_BUYING


def begin(draft: Draft) -> None:
    """Ask for declarations before the deal where that is the custom, else deal (R8.4)."""
    if draft.deal.variant.declare is Declare.CHARTER and _declares(draft.deal):
        draft.tell(WindowOpened(WindowKind.DECLARE, MEMBERS[EVERYBODY]))
    else:
        deal_cards(draft)


def deal_cards(draft: Draft) -> None:
    """Deal, and go on."""
    draft.tell(deal(draft.deal.setup))
    go_on(draft, Phase.DEAL)


def go_on(draft: Draft, after: Phase) -> None:
    """Begin the next phase that has something to ask."""
    phases = order(draft.deal.variant)
    enter(draft, phases[phases.index(after) + 1])


def enter(draft: Draft, first: Phase) -> None:
    """Begin this phase, or the next one that has something to ask."""
    phases = order(draft.deal.variant)
    for phase in phases[phases.index(first) :]:
        if _BEGIN[phase](draft):
            return


def leader_now(deal: Deal) -> int | None:
    """Who leads the first trick as things stand (R1.6)."""
    return deal.leader if is_active(deal, deal.leader) else next_active(deal, deal.leader)


def _begin(draft: Draft, phase: Phase) -> None:
    draft.tell(PhaseBegan(phase, leader_now(draft.deal)))


def _revolution(draft: Draft) -> bool:
    if not draft.deal.variant.revolution:
        return False
    _begin(draft, Phase.REVOLUTION)
    draft.tell(WindowOpened(WindowKind.REVOLUTION, MEMBERS[EVERYBODY]))
    return True


def _buy(draft: Draft) -> bool:
    return buying.offer_next(draft)


def _tribute(draft: Draft) -> bool:
    return tribute.begin(draft)


def _declares(deal: Deal) -> bool:
    return deal.variant.declare is not Declare.OFF and deal.variant.opening is not Opening.OFF


def _declare(draft: Draft) -> bool:
    deal = draft.deal
    asked = _asked_to_declare(deal) if _declares(deal) else NOBODY
    if not asked:
        return False
    _begin(draft, Phase.DECLARE)
    draft.tell(WindowOpened(WindowKind.DECLARE, MEMBERS[asked]))
    return True


def _asked_to_declare(deal: Deal) -> int:
    """R8.4: all but a revolter, his opposite and who declared before the deal."""
    revolter = deal.standing.revolter
    pair = NOBODY if revolter is None else mask_of((revolter, opposite(revolter)))
    return EVERYBODY & ~pair & ~deal.points_of.declared_before


def _discard(draft: Draft) -> bool:
    if not draft.deal.variant.discard:
        return False
    _begin(draft, Phase.DISCARD)
    return True


def _play(draft: Draft) -> bool:
    _begin(draft, Phase.PLAY)
    trick.begin_play(draft)
    return True


_BEGIN: dict[Phase, Callable[[Draft], bool]] = {
    Phase.REVOLUTION: _revolution,
    Phase.BUY: _buy,
    Phase.TRIBUTE: _tribute,
    Phase.DECLARE: _declare,
    Phase.DISCARD: _discard,
    Phase.PLAY: _play,
}
