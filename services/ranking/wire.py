"""Between ranking's values and its messages on the wire, and from the engine's facts to results.

Law: shapes only. What cannot be read raises `MalformedRequest` when a client sent it, `Poison` when a fact carries it.
A fact that rates nobody (an unranked table, a void deal, an empty seat) is read as no result.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from google.protobuf.message import DecodeError
from gouji.engine.v1 import facts_pb2 as engine_facts
from gouji.ranking.v1 import facts_pb2, ranking_pb2

from engine.runtime import subjects
from engine.runtime.bus import FactMessage
from engine.runtime.faults import MalformedRequest
from engine.runtime.intake import Arrival, Poison
from engine.runtime.outbox_relay import OutgoingFact
from services.ranking.board import Listed, Page, Place
from services.ranking.fold import DealResult, MatchResult, Result
from services.ranking.journal import Change, Entry
from services.ranking.rating import SEATS

# A player id becomes a token of a subject.
_PLAYER: Final = re.compile(r"[!-~]{1,128}")
_NO_TOKEN: Final = re.compile(r"[.*>]")
_TOKEN: Final = re.compile(r"(\d{1,9}):(\d{1,9}):([!-~]{1,128})")
_LONGEST_TOKEN: Final = 256


def rating_to_wire(player: Listed) -> ranking_pb2.Rating:
    """Write a player's rating."""
    standing = player.standing
    return ranking_pb2.Rating(
        player_id=player.player_id,
        mu=standing.skill.mu,
        sigma=standing.skill.sigma,
        rating=player.shown,
        deals=standing.deals,
        matches=standing.matches,
    )


def page_to_wire(page: Page) -> ranking_pb2.ListLeaderboardResponse:
    """Write a page of the board."""
    return ranking_pb2.ListLeaderboardResponse(
        entries=[
            ranking_pb2.LeaderboardEntry(rank=entry.rank, rating=rating_to_wire(entry.player)) for entry in page.entries
        ],
        next_page_token=_token(page.last) if page.last else "",
    )


def place_from_wire(token: str) -> Place | None:
    """Read where a page goes on; None for the first page. Raises `MalformedRequest`."""
    if not token:
        return None
    try:
        text = urlsafe_b64decode(token[:_LONGEST_TOKEN].encode("ascii")).decode("ascii")
    except ValueError as garbled:
        raise MalformedRequest("page_token is not one that was given out.") from garbled
    if (found := _TOKEN.fullmatch(text)) is None:
        raise MalformedRequest("page_token is not one that was given out.")
    return Place(int(found[1]), int(found[2]), found[3])


def player_from_wire(text: str) -> str:
    """Read a player id. Raises `MalformedRequest`."""
    if _PLAYER.fullmatch(text) is None:
        raise MalformedRequest("player_id is not a player's id.")
    return text


def announce(change: Change) -> OutgoingFact:
    """Write the fact that tells of a player's new rating; every rated deal gives each of its players one."""
    fact = facts_pb2.RatingChanged(
        player_id=change.player_id,
        mu=change.standing.skill.mu,
        sigma=change.standing.skill.sigma,
        rating=change.standing.shown,
        cause=change.cause,
    )
    payload = fact.SerializeToString(deterministic=True)
    event_id = f"{change.cause}:{change.player_id}"
    return OutgoingFact(subjects.rating(change.player_id), change.standing.deals, event_id, payload)


def entry_from_fact(message: FactMessage) -> Arrival[Entry]:
    """Read a fact of the engine. Raises `Poison`."""
    try:
        fact = engine_facts.Fact.FromString(message.payload)
        subject = subjects.fact(UUID(fact.table_id))
    except (DecodeError, ValueError) as unreadable:
        raise Poison("unreadable fact") from unreadable
    if subject != message.subject or fact.position < 1:
        raise Poison("a fact that is not its subject's")
    entry = Entry(message.subject, fact.position, message.payload, fact.event_id, _result(fact))
    return Arrival(fact.position, entry)


def _token(place: Place) -> str:
    return urlsafe_b64encode(f"{place.rank}:{place.shown}:{place.player_id}".encode("ascii")).decode("ascii")


def _result(fact: engine_facts.Fact) -> Result | None:
    match fact.WhichOneof("fact"):
        case "deal_finished" if fact.deal_finished.ranked and fact.deal_finished.places:
            return _deal(fact.deal_finished)
        case "match_finished" if fact.match_finished.ranked:
            return _match(fact.match_finished)
        case _:
            return None


def _deal(fact: engine_facts.DealFinishedFact) -> DealResult | None:
    players = _players(fact.players)
    if sorted(fact.places) != list(range(SEATS)):
        raise Poison("places that are no order of six seats")
    if players is None:
        return None
    return DealResult(players, tuple(fact.places), fact.even_points, fact.odd_points)


def _match(fact: engine_facts.MatchFinishedFact) -> MatchResult | None:
    players = _players(fact.players)
    return None if players is None else MatchResult(players)


def _players(players: Sequence[str]) -> tuple[str, ...] | None:
    """Check six players; None when a seat is empty, for five do not make a result."""
    if len(players) != SEATS:
        raise Poison("not six seats")
    if not all(players):
        return None
    if len(set(players)) != SEATS:
        raise Poison("a player in two seats")
    if any(_PLAYER.fullmatch(player_id) is None or _NO_TOKEN.search(player_id) for player_id in players):
        raise Poison("a player id that cannot be a subject's token")
    return tuple(players)
