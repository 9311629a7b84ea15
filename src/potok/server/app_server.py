"""A web application on a port, served by a thread of this process."""

from __future__ import annotations

import socket
import threading
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from potok.errors import SetupError
from potok.server.http.either_protocol import protocol_over
from potok.server.tls import CertificateReloader, Tls


class CannotListen(SetupError):
    """The address is not available on this machine, or in use."""

    def __init__(self, host: str, port: int, why: str) -> None:
        hint = "choose another port, or 0 for any free port"
        super().__init__(f"cannot listen on {host} port {port}: {why}", hint=hint)


class AppServer:
    """An application over HTTP, from `start()` to `stop()`."""

    def __init__(self, host: str, port: int) -> None:
        """Take the port, which accepts connections from now on."""
        self._socket = _listen(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])

    def _serve(self, app: ASGIApp, *, name: str, connections: int, tls: Tls | None = None) -> None:
        """Prepare to serve an application in a thread of this name."""
        context = None if tls is None else tls.context()
        self._reloader = None if tls is None or context is None else CertificateReloader(tls, context)
        config = uvicorn.Config(
            app,
            http=protocol_over(context),
            limit_concurrency=connections,
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            headers=[("x-content-type-options", "nosniff")],
            timeout_graceful_shutdown=2,
            lifespan="on",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: self._server.run(sockets=[self._socket]), name=name, daemon=True)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self._reloader is None else 'https'}://{host}:{self.port}"

    def start(self) -> None:
        self._thread.start()
        if self._reloader is not None:
            self._reloader.start()

    def stop(self) -> None:
        """End all responses, and release the port."""
        if self._reloader is not None:
            self._reloader.close()
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self._socket.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; return whether the server has stopped."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


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
