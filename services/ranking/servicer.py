"""The ranking service's RPCs: read the request, ask, write the answer.

Law: translation only. Faults pass through to the interceptor, which knows their statuses. Ratings are public: whoever
is signed in may read them.
"""

from __future__ import annotations

from typing import Any

import grpc
from gouji.ranking.v1 import ranking_pb2 as pb
from gouji.ranking.v1 import ranking_pb2_grpc as rpc

from services.ranking.board import Board
from services.ranking.wire import page_to_wire, place_from_wire, player_from_wire, rating_to_wire

Context = grpc.aio.ServicerContext[Any, Any]


class RankingServicer(rpc.RankingServiceServicer):
    """Reads the board to players."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def GetRating(self, request: pb.GetRatingRequest, context: Context) -> pb.GetRatingResponse:  # noqa: ARG002 - gRPC's
        """Show a player's rating."""
        player = await self._board.find(player_from_wire(request.player_id))
        return pb.GetRatingResponse(rating=rating_to_wire(player))

    async def ListLeaderboard(self, request: pb.ListLeaderboardRequest, context: Context) -> pb.ListLeaderboardResponse:  # noqa: ARG002 - gRPC's
        """Show a page of the board."""
        return page_to_wire(await self._board.page(request.page_size, place_from_wire(request.page_token)))
