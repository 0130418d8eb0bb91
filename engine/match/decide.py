"""What a table answers to a command.

Law: pure; a command either produces events or is refused with one reason and changes nothing. Who sits where is decided
here, what may be played in a deal by `rules.decide`. Randomness and time come with the command as data.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple, assert_never

from engine import rules
from engine.match import commands as asked
from engine.match import events as happened
from engine.match.commands import (
    Command,
    OpenTable,
    PenaltyCommand,
    Play,
    PlayerCommand,
    StartDeal,
    TableCommand,
    TakeSeat,
)
from engine.match.events import DealRevealed, DealStarted, Event, MatchFinished, SeatTaken
from engine.match.evolve import fold, setup_of
from engine.match.seating import EMPTY_SEATS, NOBODY, changed_hands, seat_for, seated
from engine.match.standings import is_decided
from engine.match.state import Match, Phase, WaitKind, is_full, is_over, seat_of, waiting, wants_commitment, wants_deal
from engine.rules import commands as penal
from engine.rules import events as dealt
from engine.rules.variant import RULE_BOOK


class MatchReason(StrEnum):
    """Why a table said no, outside the rules of a deal."""

    NO_DEAL_RUNNING = "No deal is running."
    SEAT_TAKEN = "Somebody sits there."
    ALREADY_SEATED = "You have a seat at this table."
    NOT_SEATED = "You have no seat at this table."
    TABLE_CLOSED = "The match is over."
    DEAL_RUNNING = "A deal is running."
    NOT_YOUR_TABLE = "You may not sit at this table."
    NOT_COMMITTED = "The house has not committed to a seed yet."
    SEATS_ARE_GIVEN = "The house gives the seats of this table."
    NOT_FINISHED = "The match was not played to its end."
    NO_REMATCH = "A seat of the finished match is empty, or its end is too long ago."


class Refused(NamedTuple):
    """Nothing happened, for this reason."""

    reason: MatchReason


Decision = tuple[Event, ...] | Refused | rules.Refused


def decide(match: Match, command: Command) -> Decision:
    """The events that follow from this command, or why there are none."""
    if isinstance(command, OpenTable):
        return _open(match, command)
    if is_over(match):
        return Refused(MatchReason.TABLE_CLOSED)
    if isinstance(command, PlayerCommand):
        return _ask(match, command)
    if isinstance(command, TableCommand):
        return _run(match, command)
    if isinstance(command, penal.Disqualify) and match.players[command.seat] == NOBODY:
        return Refused(MatchReason.NOT_SEATED)
    if match.phase is Phase.PLAYING:
        return _in_the_deal(match, command)
    return _punish(match, command)


def _ask(match: Match, command: PlayerCommand) -> Decision:
    match command:
        case TakeSeat():
            return _take_seat(match, command)
        case asked.LeaveSeat(player):
            return _leave_seat(match, player)
        case asked.SetReady():
            return _set_ready(match, command)
        case Play():
            return _play(match, command)
        case _:
            assert_never(command)


def _run(match: Match, command: TableCommand) -> Decision:
    match command:
        case asked.CommitSeed(seed, commitment):
            return _commit(match, seed, commitment)
        case asked.CallDeal():
            return _call(match)
        case StartDeal():
            return _start(match, command)
        case asked.Substitute(seat, player):
            return _substitute(match, seat, player)
        case asked.ExtendDeadline(until_ms):
            return (happened.DeadlineExtended(until_ms),)
        case asked.CloseTable(reason):
            return _close(match, reason)
        case _:
            assert_never(command)


def due(match: Match) -> tuple[Command, ...]:
    """What the house does when the present deadline passes: it never leaves a table waiting for ever (R14.4)."""
    wait = waiting(match)
    if wait is None:
        return ()
    if wait.kind in {WaitKind.TURN, WaitKind.WINDOW}:
        return tuple(penal.TimeOut(seat) for seat in wait.seats)
    if not is_full(match):
        return (asked.CloseTable("seat_empty" if match.phase is Phase.BETWEEN_DEALS else "abandoned"),)
    if match.phase is Phase.BETWEEN_DEALS and not match.acted and not any(match.ready):
        return (asked.CloseTable("abandoned"),)
    return (asked.CallDeal(),)


def _open(match: Match, command: OpenTable) -> Decision:
    if match.players:
        return Refused(MatchReason.NOT_YOUR_TABLE)
    players = seated(command.seating, command.players, command.draw) if command.players else EMPTY_SEATS
    return (happened.TableOpened(command.variant, command.seating, command.ranked, players),)


def _take_seat(match: Match, command: TakeSeat) -> Decision:
    if refused := _may_sit(match, command.player):
        return refused
    if match.ranked:
        return Refused(MatchReason.SEATS_ARE_GIVEN)
    if match.phase is Phase.PLAYING:
        return Refused(MatchReason.DEAL_RUNNING)
    seat = seat_for(match.seating, match.players, command.seat, command.draw)
    return Refused(MatchReason.SEAT_TAKEN) if seat is None else (SeatTaken(seat, command.player),)


def _may_sit(match: Match, player: str) -> Refused | None:
    if player in match.barred:
        return Refused(MatchReason.NOT_YOUR_TABLE)
    if seat_of(match, player) is not None:
        return Refused(MatchReason.ALREADY_SEATED)
    return None


def _leave_seat(match: Match, player: str) -> Decision:
    seat = seat_of(match, player)
    if seat is None:
        return Refused(MatchReason.NOT_SEATED)
    if match.phase is Phase.PLAYING:
        return Refused(MatchReason.DEAL_RUNNING)
    return (happened.SeatLeft(seat, player),)


def _set_ready(match: Match, command: asked.SetReady) -> Decision:
    seat = seat_of(match, command.player)
    if seat is None:
        return Refused(MatchReason.NOT_SEATED)
    if match.phase is Phase.PLAYING:
        return Refused(MatchReason.DEAL_RUNNING)
    if not match.commitment:
        return Refused(MatchReason.NOT_COMMITTED)
    return (happened.ReadyChanged(seat, command.ready, command.contribution if command.ready else ""),)


def _play(match: Match, command: Play) -> Decision:
    seat = seat_of(match, command.player)
    if seat is None:
        return Refused(MatchReason.NOT_SEATED)
    return _in_the_deal(match, replace(command.command, seat=seat))


def _in_the_deal(match: Match, command: rules.Command) -> Decision:
    # An ended deal still takes a swap of places, until the next one is cut (R6.10).
    if match.deal is None:
        return Refused(MatchReason.NO_DEAL_RUNNING)
    decided = rules.decide(match.deal, command)
    if isinstance(decided, rules.Refused):
        return decided
    return (*decided, *_aftermath(match, decided))


def _aftermath(match: Match, events: tuple[rules.DealEvent, ...]) -> tuple[Event, ...]:
    if not any(isinstance(event, dealt.DealEnded | dealt.DealVoided) for event in events):
        return ()
    after = fold(match, events)
    if not is_decided(after):
        return _revealed(match)
    return (*_revealed(match), MatchFinished(after.counted, after.points, after.even_points, after.odd_points))


def _revealed(match: Match) -> tuple[DealRevealed, ...]:
    started = match.started
    if started is None or started.deck is None:
        return ()
    return (
        DealRevealed(
            deal=started.deal,
            commitment=started.commitment,
            seed=started.seed or "",
            contributions=started.contributions or (),
            deck=started.deck,
            random_seat=started.random_seat,
        ),
    )


def _commit(match: Match, seed: str, commitment: str) -> Decision:
    if not wants_commitment(match):
        return Refused(MatchReason.DEAL_RUNNING)
    return (happened.SeedCommitted(match.deal_number + 1, commitment, seed),)


def _call(match: Match) -> Decision:
    if match.phase is Phase.PLAYING:
        return Refused(MatchReason.DEAL_RUNNING)
    if not is_full(match):
        return Refused(MatchReason.NOT_SEATED)
    return (happened.DealCalled(match.deal_number + 1),)


def begin(started: DealStarted) -> tuple[Event, ...] | rules.Refused:
    """What the rules make of a deal that starts: the cards dealt, the first question."""
    return rules.decide(rules.open_deal(setup_of(started)), penal.Begin())


def _start(match: Match, command: StartDeal) -> Decision:
    if not wants_deal(match):
        return Refused(MatchReason.DEAL_RUNNING)
    started = _next_deal(match, command)
    begun = begin(started)
    return begun if isinstance(begun, rules.Refused) else (started, *begun)


def _next_deal(match: Match, command: StartDeal) -> DealStarted:
    return DealStarted(
        deal=match.deal_number + 1,
        counted=match.counted,
        rules=RULE_BOOK,
        variant=match.variant,
        seating=match.seating,
        ranked=match.ranked,
        players=match.players,
        barred=match.barred,
        points=match.points,
        even_points=match.even_points,
        odd_points=match.odd_points,
        places=match.places,
        debts=match.debts,
        cutter=match.cutter,
        changed=_changed(match),
        first_drawer=match.drawer if match.voided else None,
        random_seat=command.random_seat,
        commitment=match.commitment,
        seed=match.seed,
        contributions=match.contributions,
        deck=command.deck,
    )


def _changed(match: Match) -> tuple[int, ...]:
    """Seats that changed hands since the deal before; a void deal does not count as one (R7.2)."""
    if match.started is None:
        return ()
    fresh = changed_hands(match.started.players, match.players)
    kept = match.started.changed if match.voided else ()
    return tuple(sorted({*fresh, *kept}))


def _substitute(match: Match, seat: int, player: str) -> Decision:
    if player != NOBODY and (refused := _may_sit(match, player)):
        return refused
    return (happened.SeatSubstituted(seat, player),)


def _close(match: Match, reason: str) -> Decision:
    revealed = _revealed(match) if match.phase is Phase.PLAYING else ()
    return (*revealed, happened.TableClosed(reason))


def _punish(match: Match, command: PenaltyCommand) -> Decision:
    """A penalty between deals, where the rules have no say (R12)."""
    if match.players[command.seat] == NOBODY:
        return Refused(MatchReason.NOT_SEATED)
    match command:
        case penal.Warn(seat, reason):
            return (dealt.Warned(seat, reason),)
        case penal.Dock(seat, points, reason):
            return (dealt.PointsDocked(seat, points, reason),)
        case penal.Disqualify(seat, reason):
            return (dealt.Disqualified(seat, reason),)
        case penal.TimeOut() | penal.Forfeit() | penal.JudgeLast():
            return Refused(MatchReason.NO_DEAL_RUNNING)
        case _:
            assert_never(command)
