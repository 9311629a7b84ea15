"""HTTP/1.1 and HTTP/2 on one port, in the clear or over TLS: clients of ksqlDB use HTTP/2 with prior knowledge."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Coroutine, Generator
from functools import partial
from typing import Any, cast

import uvicorn

from potok.server.http.connections import ServerState
from potok.server.http.http1 import Http1Protocol
from potok.server.http.http2 import Http2Protocol

log = logging.getLogger(__name__)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SILENT_S = 10.0
"""Timeout for the first bytes of a connection, and for its TLS handshake."""

GOODBYE_S = 5.0
"""Timeout for the end of a TLS connection."""

CROWD = 1.25
"""Connections beyond the limit get a 503; beyond this multiple of the limit they are closed."""


class EitherProtocol(asyncio.Protocol):
    """Detect the protocol by the first bytes of a connection and pass it on.

    `uvicorn.Config(http=...)` takes this class; its arguments have the names that `uvicorn.Server` gives them.

    TLS begins here, not in uvicorn, so that connections count and time out from their first moment.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if not config.loaded:
            config.load()
        self._arguments = config, server_state, app_state
        self._connections: set[Any] = server_state.connections
        self._loop = _loop or asyncio.get_event_loop()
        self._most, self._started = config.limit_concurrency, b""
        self._timeout: asyncio.TimerHandle | None = None
        self._tls, self._is_secure = tls, tls is None
        self._securing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self._most is not None and len(self._connections) > CROWD * self._most:
            self._transport.abort()
            return
        self._connections.add(self)
        give_up = self._transport.close if self._tls is None else self._transport.abort
        self._timeout = self._loop.call_later(SILENT_S, give_up)
        if self._tls is not None:
            handshake = self._loop.start_tls(
                self._transport,
                self,
                self._tls,
                server_side=True,
                ssl_handshake_timeout=SILENT_S,
                ssl_shutdown_timeout=GOODBYE_S,
            )
            self._securing = self._loop.create_task(self._secure(_Begun(handshake)))

    async def _secure(self, handshake: _Begun) -> None:
        try:
            secured = await handshake
        except (OSError, ssl.SSLError) as error:
            log.info("a client failed the TLS handshake: %s", error)
            secured = None
        if secured is None or secured.is_closing():
            self._leave()
            self._transport.abort()
            return
        self._transport, self._is_secure = secured, True
        if self._started:
            self.data_received(b"")

    def data_received(self, data: bytes) -> None:
        self._started += data
        if not self._is_secure:
            return  # bytes that arrived with the handshake
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


class _Begun:
    """A coroutine that has run up to its first wait. A task would begin it in the next iteration of the loop, and the
    first bytes of the client may arrive before that."""

    def __init__(self, coroutine: Coroutine[Any, None, asyncio.Transport | None]) -> None:
        self._coroutine, self._awaited = coroutine, coroutine.send(None)

    def __await__(self) -> Generator[Any, None, asyncio.Transport | None]:
        yield self._awaited
        return (yield from self._coroutine.__await__())


def protocol_over(tls: ssl.SSLContext | None) -> type[asyncio.Protocol]:
    """Return what `uvicorn.Config(http=...)` takes, for plain TCP or for TLS."""
    return EitherProtocol if tls is None else cast("type[asyncio.Protocol]", partial(EitherProtocol, tls=tls))
