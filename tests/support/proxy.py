"""A TCP proxy that can lose what it carries or be slow about it: a black hole, a cut, a refusal, a delay.

Law: bytes only; knows no protocol.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Self


@dataclass(slots=True)
class _Link:
    """One connection through the proxy. `is_doomed`: it is cut instead of carrying its next answer."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    is_doomed: bool = False

    def cut(self) -> None:
        self.client.transport.abort()
        self.server.transport.abort()


class FaultyProxy:
    """Listens on the loopback and carries bytes to a port there, until told otherwise."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._answers_lost = False
        self._mark = b""
        self._is_mark_delivered = False
        self._refusing = False
        self._delay_s = 0.0
        self._open = asyncio.Event()
        self._open.set()

    @property
    def port(self) -> int:
        """Where to connect."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def is_open(self) -> bool:
        """Whether anything gets through."""
        return self._open.is_set() and not self._refusing

    def swallow(self) -> None:
        """From now on nothing arrives anywhere, and nobody is told; also on new connections."""
        self._open.clear()

    def lose_answers(self) -> None:
        """Carry what clients say, but cut the connection instead of carrying the next answer."""
        self._answers_lost = True

    def cut_at(self, mark: bytes, *, is_delivered: bool) -> None:
        """Cut the connection on which a client says this, once: before it arrives, or instead of carrying its answer."""
        self._mark, self._is_mark_delivered = mark, is_delivered

    @property
    def has_cut(self) -> bool:
        """Whether the mark of `cut_at` has been said."""
        return not self._mark

    def delay(self, seconds: float) -> None:
        """From now on every piece takes so long, each way."""
        self._delay_s = seconds

    def refuse(self) -> None:
        """Cut everything and let nobody in."""
        self._refusing = True
        self.cut()

    def cut(self) -> None:
        """Reset every connection."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    def release(self) -> None:
        """Carry on, late, with all that was swallowed."""
        self._open.set()

    def heal(self) -> None:
        """Carry new connections again; those that were swallowed are reset."""
        self.cut()
        self._answers_lost = self._refusing = False
        self._mark = b""
        self._delay_s = 0.0
        self._open.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.heal()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        await self._server.wait_closed()

    async def _carry(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        self._writers.add(client_out)
        if self._refusing:
            self._drop(client_out)
            return
        try:
            server_in, server_out = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            self._drop(client_out)
            return
        self._writers.add(server_out)
        link = _Link(client_out, server_out)
        for reader, writer in ((client_in, server_out), (server_in, client_out)):
            pump = asyncio.create_task(self._pump(reader, writer, link))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: _Link) -> None:
        try:
            while piece := await reader.read(65536):
                await self._open.wait()
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                if self._is_lost(piece, link, is_answer=writer is link.client):
                    return
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            self._drop(writer)

    def _is_lost(self, piece: bytes, link: _Link, *, is_answer: bool) -> bool:
        """Whether this piece is not carried; then its connection is cut."""
        if is_answer and self._answers_lost:
            self._answers_lost = False
            self.cut()
            return True
        if not is_answer and self._mark and self._mark in piece:
            self._mark = b""
            link.is_doomed = True
            is_lost = not self._is_mark_delivered
        else:
            is_lost = is_answer and link.is_doomed
        if is_lost:
            link.cut()
        return is_lost

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.transport.abort()
