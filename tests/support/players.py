"""A careless player: tries all sorts of actions at random, so that a few deals visit most of the rules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as count_up
from random import Random

from engine import rules
from engine.match import Command
from engine.rules import commands as ask
from engine.rules.cards import BIG, NATURALS, SMALL, TWO, Cards, cards_of, count, faces_of, only, size
from engine.rules.commands import SeatCommand
from engine.rules.events import Phase, WindowKind
from engine.rules.seats import teammates
from tests.support.tables import LoggedTable

_TRIES = 12


def play_out(played: LoggedTable, seed: object) -> None:
    """Play the running deal to its end, carelessly; who finds nothing runs out of time."""
    play_some(played, seed, None)


def play_some(played: LoggedTable, seed: object, most: int | None) -> None:
    """As `play_out`, for so many moves at most."""
    chance = Random(str(seed))
    for _ in count_up() if most is None else range(most):
        if played.match.phase.value != "playing":
            return
        deal = played.match.deal
        assert deal is not None
        seat = chance.choice(rules.waiting(deal))
        if chance.random() < 0.03:
            _meddle(played, deal, chance)
        elif not any(_is_accepted(played, seat, command) for command in _ideas(deal, seat, chance)):
            played.accepts(ask.TimeOut(seat))


def _is_accepted(played: LoggedTable, seat: int, command: SeatCommand) -> bool:
    return isinstance(played.plays(seat, command), tuple) and played.log[-1].actor == played.match.players[seat]


def _meddle(played: LoggedTable, deal: rules.Deal, chance: Random) -> None:
    """Somebody says something that is not his turn, or the house punishes."""
    seat = chance.randrange(6)
    mate = chance.choice(teammates(seat))
    said: list[SeatCommand] = [
        ask.Consult(seat, mate),
        ask.Suggest(seat, mate, _some(deal.hands[mate], chance)),
        ask.Ask(seat, chance.randrange(6)),
        ask.Renounce(seat),
    ]
    penalties: list[Command] = [ask.Warn(seat, "talk"), ask.Dock(seat, 2, "a long talk # indeed"), ask.Forfeit(seat)]
    for command in chance.sample(said, k=2):
        played.plays(seat, command)
    if chance.random() < 0.1:
        penalties = [ask.JudgeLast(seat, "walked away")]
    played.does(chance.choice(penalties))


def _ideas(deal: rules.Deal, seat: int, chance: Random) -> Iterator[SeatCommand]:
    if deal.window is not None:
        yield from _answers(deal, seat, chance)
    elif deal.phase is Phase.PLAY:
        yield from _turns(deal, seat, chance)
    else:
        yield from _preparations(deal, seat, chance)


def _answers(deal: rules.Deal, seat: int, chance: Random) -> Iterator[SeatCommand]:
    kind = deal.window.kind if deal.window is not None else None
    if kind in {WindowKind.BURN, WindowKind.COUNTER}:
        yield from (ask.Burn(seat, _a_set(deal, seat, chance)) for _ in range(_TRIES))
        yield ask.Decline(seat)
    elif kind is WindowKind.ORDER:
        yield ask.Order(seat, _rank_by_rank(deal))
        yield ask.Decline(seat)
    else:
        if chance.random() < 0.7:
            yield from (ask.Revolt(seat), ask.Declare(seat), ask.Agree(seat))
        yield from (ask.Stay(seat), ask.Silent(seat), ask.Refuse(seat))


def _rank_by_rank(deal: rules.Deal) -> tuple[Cards, ...]:
    """The hand that is to be ordered, rank after rank, highest first, so that 3s come last."""
    hand = deal.hands[deal.advice.ordering or 0]
    return tuple(cards for rank in reversed(range(15)) if (cards := only(hand, rank)))


def _turns(deal: rules.Deal, seat: int, chance: Random) -> Iterator[SeatCommand]:
    if deal.trick.owner is not None and chance.random() < 0.4:
        said: list[SeatCommand] = [ask.Pass(seat), ask.Cover(seat), ask.Yield(seat), ask.Apply(seat)]
        yield chance.choice(said)
    if deal.trick.owner is None and chance.random() < 0.2:
        yield ask.HandOver(seat)
    yield from (ask.Lay(seat, _a_set(deal, seat, chance)) for _ in range(_TRIES))
    yield ask.Pass(seat)


def _preparations(deal: rules.Deal, seat: int, chance: Random) -> Iterator[SeatCommand]:
    if chance.random() < 0.5:
        yield ask.No(seat)
    yield from (ask.Buy(seat, rank) for rank in (0, 1))
    yield ask.Discard(seat, (chance.randrange(2),))
    yield ask.Keep(seat)
    yield from (ask.Return(seat, _some(deal.hands[seat], chance)) for _ in range(_TRIES))


def _some(hand: Cards, chance: Random) -> Cards:
    faces = list(faces_of(hand))
    return cards_of(chance.sample(faces, min(len(faces), chance.choice((1, 1, 2)))))


def _a_set(deal: rules.Deal, seat: int, chance: Random) -> Cards:
    """Some set of the hand, of the size that lies on the table where one does."""
    hand = deal.hands[seat]
    held = [rank for rank in NATURALS if count(hand, rank)]
    rank = chance.choice(held) if held else TWO
    wanted = size(deal.trick.cards) if deal.trick.owner is not None else chance.choice((1, 2, 3, 5, 8, 36))
    pool = list(faces_of(only(hand, rank)))
    attachable = [one for joined in (TWO, SMALL, BIG) if joined != rank for one in faces_of(only(hand, joined))]
    if chance.random() < 0.5:
        chance.shuffle(attachable)
        pool = attachable[: chance.randrange(3)] + pool
    else:
        pool += attachable
    return cards_of(pool[:wanted])
