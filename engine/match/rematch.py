"""The same six once more, at a new table.

Law: pure. A rematch is an opening like any other; the finished match is closed for ever and learns nothing of it.
"""

from __future__ import annotations

from engine.match.commands import IN_ORDER, OpenTable
from engine.match.decide import MatchReason, Refused
from engine.match.state import Match, Phase, is_full, seat_of


def rematch(match: Match, player: str) -> OpenTable | Refused:
    """The opening that one of the six gets for asking: same variant and seating, everybody where he sits now.

    Never ranked: whom a ranked match seats together is not for players to say. The seats drawn in order are those they
    have, however teams are formed.
    """
    if seat_of(match, player) is None:
        return Refused(MatchReason.NOT_YOUR_TABLE)
    if match.phase is not Phase.FINISHED:
        return Refused(MatchReason.NOT_FINISHED)
    if not is_full(match):
        return Refused(MatchReason.NO_REMATCH)
    return OpenTable(match.variant, match.seating, match.players, ranked=False, draw=IN_ORDER)
