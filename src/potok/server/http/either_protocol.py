"""HTTP/1.1 and HTTP/2 on one port: clients of ksqlDB use HTTP/2 with prior knowledge."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import uvicorn

from potok.server.http.connections import ServerState
from potok.server.http.http1 import Http1Protocol
from potok.server.http.http2 import Http2Protocol

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SILENT_S = 10.0
"""Timeout for the first bytes of a connection."""

CROWD = 1.25
"""Connections beyond the limit get a 503; beyond this multiple of the limit they are closed."""


class EitherProtocol(asyncio.Protocol):
    """Detect the protocol by the first bytes of a connection and pass it on.

    `uvicorn.Config(http=...)` takes this class; its arguments have the names that `uvicorn.Server` gives them.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        if not config.loaded:
            config.load()
        self._arguments = config, server_state, app_state
        self._connections: set[Any] = server_state.connections
        self._loop = _loop or asyncio.get_event_loop()
        self._most, self._started = config.limit_concurrency, b""
        self._timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self._most is not None and len(self._connections) > CROWD * self._most:
            self._transport.abort()
            return
        self._connections.add(self)
        self._timeout = self._loop.call_later(SILENT_S, self._transport.close)

    def data_received(self, data: bytes) -> None:
        self._started += data
        if len(self._started) < len(PREFACE) and PREFACE.startswith(self._started):
            return
        kind: Any = Http2Protocol if self._started.startswith(PREFACE) else Http1Protocol
        chosen: asyncio.Protocol = kind(*self._arguments)
        self._leave()
        self._transport.set_protocol(chosen)
        chosen.connection_made(self._transport)
        chosen.data_received(self._started)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def shutdown(self) -> None:
        """Close the connection; called when the server stops."""
        self._transport.close()

    def _leave(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
        self._connections.discard(self)
