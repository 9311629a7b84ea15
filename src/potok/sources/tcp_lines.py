"""Each line of a TCP connection becomes one record."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

from potok.errors import TopologyError
from potok.event_loop import EventLoop
from potok.records.log_record import LogRecord
from potok.sources.arrival import Arrival
from potok.sources.counters import STOPPED, TOO_LARGE
from potok.sources.listener import Address, CannotListen, Listener, ListenerContext, ListenerSpec, option

_CHUNK = 256 * 1024
_RETRY_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpLines(ListenerSpec):
    """Lines of text, each one record. The protocol has no acknowledgements: lines that are not in the log yet when the
    gateway is killed are lost. When the buffer is full, `block` stops reading, so that clients wait.
    """

    kind: ClassVar[str] = "tcp"

    listen: str = option("HOST:PORT to listen on.")
    max_line: int = option("Maximum size of a line in bytes; a longer one is lost as `too_large`.", default=1 << 20)
    max_connections: int = option("Maximum number of concurrent connections; further ones are closed.", default=1_000)

    def check(self) -> None:
        ListenerSpec.check(self)
        Address.of(self.listen)
        self.overload.allow(("block", "drop_newest", "drop_oldest"), "a line cannot be rejected")
        for name in ("max_line", "max_connections"):
            if getattr(self, name) < 1:
                raise TopologyError(f"{name} is too small", hint="write 1 or more")

    def open(self, context: ListenerContext) -> Listener:
        return LineListener(self, context)


class LineListener(Listener):
    """Connections read by one event loop."""

    def __init__(self, spec: TcpLines, context: ListenerContext) -> None:
        self._spec, self._context = spec, context
        self._loop = EventLoop(f"potok-tcp-{spec.name}")
        self._connections: set[asyncio.Task[Any]] = set()
        self._waiting = 0
        address = Address.of(spec.listen)
        try:
            self._server: asyncio.Server = self._loop.run(
                asyncio.start_server(self._accept, address.host, address.port, start_serving=False, limit=_CHUNK)
            )
        except OSError as error:
            self._loop.close()
            raise CannotListen(spec.name, address, error.strerror or str(error)) from error
        self.address = Address(address.host, int(self._server.sockets[0].getsockname()[1]))

    def start(self) -> None:
        self._loop.run(self._server.start_serving())

    def stop(self) -> None:
        self._loop.run(self._end())

    def close(self) -> None:
        if self._loop.is_open:
            self._server.close()
            self._loop.close()

    def state(self) -> dict[str, Any]:
        return {"connections": len(self._connections), "waiting": self._waiting}

    async def _end(self) -> None:
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._connections) >= self._spec.max_connections:
            self._context.counters.refused("too_many_connections")
            writer.close()
            return
        self._connections.add(task)
        try:
            await self._read(reader)
        except (ConnectionError, asyncio.CancelledError):
            # The client is gone, or the gateway stops; complete lines were handed over.
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Hand over complete lines, and the last one without its end when the client closes the connection."""
        rest, skipping = bytearray(), False
        while data := await reader.read(_CHUNK):
            # A client may send a long line byte by byte: what is there already is not looked at again.
            first, newline, others = data.partition(b"\n")
            if not skipping:
                rest += first
            if newline:
                *lines, following = others.split(b"\n")
                if not skipping:
                    lines.insert(0, bytes(rest))
                rest, skipping = bytearray(following), False
                await self._offer(lines)
            if len(rest) > self._spec.max_line:
                self._lose([bytes(rest)])
                rest, skipping = bytearray(), True
        if rest:
            await self._offer([bytes(rest)])

    async def _offer(self, lines: list[bytes]) -> None:
        lines = [line.removesuffix(b"\r") for line in lines]
        fits = [line for line in lines if line and len(line) <= self._spec.max_line]
        if too_large := [line for line in lines if len(line) > self._spec.max_line]:
            self._lose(too_large)
        if not fits:
            return
        arrival = Arrival.of([LogRecord(None, line) for line in fits])
        if self._context.buffer.offer(arrival):
            return
        self._waiting += 1
        try:
            while not self._context.buffer.offer(arrival):
                # Not reading lets TCP slow the client down.
                await asyncio.sleep(_RETRY_S)
        except asyncio.CancelledError:
            self._context.lose(fits, STOPPED, "the buffer is full")
            raise
        finally:
            self._waiting -= 1

    def _lose(self, lines: list[bytes]) -> None:
        self._context.lose(
            [line[: self._spec.max_line] for line in lines], TOO_LARGE, "the line is longer than max_line"
        )
