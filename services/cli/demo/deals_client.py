"""Finished deals as anybody at the table exports them.

Law: messages in, text out.
"""

from __future__ import annotations

import grpc
from gouji.table.v1 import table_pb2 as pb
from gouji.table.v1 import table_pb2_grpc as rpc

CALL_S = 30.0


async def exported_deal(channel: grpc.aio.Channel, token: str, table_id: str, deal: int) -> str:
    """A finished deal in the notation."""
    stub: rpc.TableServiceAsyncStub = rpc.TableServiceStub(channel)
    request = pb.ExportDealRequest(table_id=table_id, deal=deal)
    answer = await stub.ExportDeal(request, metadata=(("authorization", f"Bearer {token}"),), timeout=CALL_S)
    return str(answer.notation)
