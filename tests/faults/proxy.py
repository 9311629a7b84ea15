"""A door between clients and a server that can be shut, for all or for those who bring something."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

HOST = "127.0.0.1"
PRODUCE = 0
"""What Kafka calls a request that brings records."""

_CHUNK = 64 << 10


class Proxy:
    """Forwards connections from a port of its own to a server. While it is shut, bytes wait and nobody notices."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._open = threading.Event()
        self._open.set()
        self._shut_for: int | None = None
        self._held = 0
        self._listener = socket.create_server((HOST, 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self, api: int | None = None) -> None:
        """Stop forwarding; with `api`, only on connections that bring such a request from here on."""
        self._held = 0
        self._shut_for = api
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    @property
    def held(self) -> int:
        """How often bytes had to wait since it was shut."""
        return self._held

    def close(self) -> None:
        self._open.set()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._pass(None)
        try:
            server = socket.create_connection((HOST, self.target), timeout=10)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        for link in (client, server):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._pump, args=(server, client, None), daemon=True).start()
        self._pump(client, server, Requests())

    def _pump(self, source: socket.socket, sink: socket.socket, requests: Requests | None) -> None:
        try:
            while data := source.recv(_CHUNK):
                self._pass(None if requests is None else list(requests.of(data)))
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for link in (source, sink):
                try:
                    link.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                link.close()

    def _pass(self, requests: list[int] | None) -> None:
        """Wait at the door, if it is shut for this."""
        if self._open.is_set():
            return
        if self._shut_for is None or (requests is not None and self._shut_for in requests):
            self._held += 1
            self._open.wait()


class Requests:
    """Reads along with a client of Kafka: a request is its length, then two bytes that say what it asks for."""

    def __init__(self) -> None:
        self._head, self._left = b"", 0

    def of(self, data: bytes) -> Iterator[int]:
        """What the requests ask for that begin in these bytes."""
        while data:
            if self._left:
                taken = min(self._left, len(data))
                self._left, data = self._left - taken, data[taken:]
                continue
            missing = 6 - len(self._head)
            self._head, data = self._head + data[:missing], data[missing:]
            if len(self._head) == 6:
                length, api = struct.unpack(">ih", self._head)
                self._head, self._left = b"", length - 2
                yield api
