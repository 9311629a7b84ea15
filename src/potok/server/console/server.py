"""Serve the page from a thread of this process."""

from __future__ import annotations

import socket
import threading

import uvicorn
from fastapi import FastAPI

from potok.errors import SetupError


class PortTaken(SetupError):
    """The port is in use."""

    def __init__(self, port: int, why: str) -> None:
        super().__init__(
            f"cannot listen on port {port}: {why}", hint="choose another one with --port, or 0 for any free port"
        )


class Server:
    """An application on 127.0.0.1, from `start()` to `stop()`.

    >>> with Server(create_app(feed), port=0) as server:
    ...     print(server.url)
    """

    def __init__(self, app: FastAPI, port: int, *, search: bool = False) -> None:
        """Args:
        port: 0 for any free port.
        search: Try the following ports if it is in use.
        """
        self._app = app
        self._socket = _listen(port, tries=20 if search else 1)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2, lifespan="on")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="console", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start serving. The port accepts connections from the construction of this object; they wait for this call."""
        self._thread.start()

    def stop(self) -> None:
        """End all responses and release the port."""
        live = getattr(self._app.state, "live", None)
        if live is not None:
            live.close()
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self._socket.close()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])


def _listen(port: int, tries: int) -> socket.socket:
    for candidate in range(port, port + tries):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # A port with connections in TIME_WAIT can be reused; one that another process listens on cannot.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", candidate))
            listener.listen(128)
        except OSError as error:
            listener.close()
            if candidate == port + tries - 1:
                raise PortTaken(candidate, error.strerror or str(error)) from error
            continue
        return listener
    raise AssertionError("unreachable")
