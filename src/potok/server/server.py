"""A database served on a port."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Collection, Sequence

import uvicorn

from potok.errors import SetupError
from potok.server.access.guard import is_loopback
from potok.server.access.limits import Limits
from potok.server.access.tokens import Tokens
from potok.server.app import create_app
from potok.server.errors import OpenToAll
from potok.server.http.either_protocol import EitherProtocol
from potok.server.pages import Files, Page
from potok.statements.database import Database

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8088
SWITCH_S = 0.001


class CannotListen(SetupError):
    """The address is not available on this machine, or in use."""

    def __init__(self, host: str, port: int, why: str) -> None:
        hint = "choose another one with --port, or 0 for any free port"
        super().__init__(f"cannot listen on {host} port {port}: {why}", hint=hint)


class Server:
    """A database over HTTP, from `start()` to `stop()`; the database stays open.

    >>> with Server(database, port=0) as server:
    ...     print(server.url)

    Args:
        host: The address to listen on; without tokens, a loopback address.
        port: The port to listen on; 0 for any free port.
        origins: Sites whose pages may call this server from a browser; none by default.
        pages: Pages of a program, which it serves itself.
        files: Files of a program.
    """

    def __init__(
        self,
        database: Database,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        *,
        tokens: Tokens | None = None,
        limits: Limits | None = None,
        origins: Collection[str] = (),
        pages: Sequence[Page] = (),
        files: Sequence[Files] = (),
    ) -> None:
        if not tokens and not is_loopback(host):
            raise OpenToAll(host)
        self._socket = _listen(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self.app = create_app(database, tokens=tokens, limits=limits, origins=origins, pages=pages, files=files)
        self.app.state.site.address = f"{host}:{self.port}"
        config = uvicorn.Config(
            self.app,
            http=EitherProtocol,
            limit_concurrency=self.app.state.site.limits.connections,
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            headers=[("x-content-type-options", "nosniff")],
            timeout_graceful_shutdown=2,
            lifespan="on",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="potok-serve", daemon=True)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Start serving in a thread. The port accepts connections from the construction of this object."""
        # Request threads share the interpreter with the batches; the default switch interval of 5 ms is too long.
        sys.setswitchinterval(min(SWITCH_S, sys.getswitchinterval()))
        self._thread.start()

    def stop(self) -> None:
        """End all responses, including endless ones, and release the port."""
        self.app.state.site.end_streams()
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self._socket.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; return whether the server has stopped."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # A port with connections in TIME_WAIT can be reused; one that another process listens on cannot.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        listener.close()
        raise CannotListen(host, port, getattr(error, "strerror", None) or str(error)) from error
    return listener
