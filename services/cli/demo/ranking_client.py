"""Ratings as one player reads them.

Law: messages in, plain values out.
"""

from __future__ import annotations

from typing import NamedTuple

import grpc
from gouji.ranking.v1 import ranking_pb2 as pb
from gouji.ranking.v1 import ranking_pb2_grpc as rpc

CALL_S = 10.0


class Rating(NamedTuple):
    """How a player stands."""

    rating: int
    deals: int
    matches: int


async def rating_of(channel: grpc.aio.Channel, token: str, player: str) -> Rating | None:
    """A player's rating; None while he has none."""
    stub: rpc.RankingServiceAsyncStub = rpc.RankingServiceStub(channel)
    signed_in = (("authorization", f"Bearer {token}"),)
    try:
        answer = await stub.GetRating(pb.GetRatingRequest(player_id=player), metadata=signed_in, timeout=CALL_S)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.NOT_FOUND:
            return None
        raise
    return Rating(answer.rating.rating, answer.rating.deals, answer.rating.matches)
