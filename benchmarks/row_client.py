"""Clients that ask a server for rows by key, or post to it, many at once in one thread.

They do what a program does that needs such rates: each has a connection of its own which stays open, sends one request,
waits for the whole answer, looks whether it is the right one, and sends the next. Nothing is sent ahead. Sockets and a
selector, without a client library: on a machine that also has the server and its query, the library would be most of
what is measured (seen: 21 us of processor time a request, 110 us with asyncio's streams).
"""

from __future__ import annotations

import random
import selectors
import socket
import time
from collections.abc import Callable

Ask = Callable[[], tuple[bytes, bytes]]
"""The next request, and what the body of its answer must begin with."""


class _Client:
    def __init__(self, port: int, count: int, ask: Ask) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ask, self.left = ask, count

    def send(self) -> None:
        request, self._wanted = self._ask()
        self._got, self._began = b"", time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> float | None:
        """How long the answer took, in milliseconds, if all of it is there."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise RuntimeError("the server closed the connection")
        self._got += data
        head, end, body = self._got.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if not end or len(body) < int(length):
            return None
        took = (time.perf_counter() - self._began) * 1000
        if not head.startswith(b"HTTP/1.1 2") or not body.startswith(self._wanted):
            raise RuntimeError(f"a wrong answer: {self._got!r}")
        self.left -= 1
        return took


def ask(port: int, clients: int, each: int, what: Ask) -> list[float]:
    """The times of all requests, in milliseconds."""
    times: list[float] = []
    with selectors.DefaultSelector() as selector:
        for client in [_Client(port, each, what) for _ in range(clients)]:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.send()
        while selector.get_map():
            for key, _ in selector.select():
                client = key.data
                took = client.receive()
                if took is None:
                    continue
                times.append(took)
                if client.left:
                    client.send()
                else:
                    selector.unregister(client.socket)
                    client.socket.close()
    return times


def rows_of(table: str, column: str, prefix: str, keys: int) -> Ask:
    """Rows of random keys of a table, by its key column."""

    def what() -> tuple[bytes, bytes]:
        key = f"{prefix}{random.randrange(keys)}".encode()
        request = b"GET /tables/%b/%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % (table.encode(), key)
        return request, b'{"%b":"%b",' % (column.encode(), key)

    return what


def post(port: int, clients: int, each: int, body: bytes) -> list[float]:
    """The times of requests that post the same body, in milliseconds."""
    request = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    return ask(port, clients, each, lambda: (request, b'{"landed":1'))
