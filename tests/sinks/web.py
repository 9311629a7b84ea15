"""A web server for tests: it remembers what came, and responds as configured."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = int | tuple[int, str] | tuple[int, str, dict[str, str]] | None
"""A status, with a text and headers; None hangs up without an answer."""


@dataclass
class Site:
    """What came to an address, request by request, and how it was answered."""

    url: str = ""
    requests: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    answer: Callable[[Any, int], Answer] = lambda body, tries: 200
    most_at_once: int = 0
    _here: int = 0
    _tries: dict[str, int] = field(default_factory=dict)
    _guard: Any = field(default_factory=threading.Lock)

    def take(self, path: str, headers: dict[str, str], body: Any) -> Answer:
        key = headers.get("Idempotency-Key") or headers["webhook-id"]
        with self._guard:
            self._here += 1
            self.most_at_once = max(self.most_at_once, self._here)
            self._tries[key] = self._tries.get(key, 0) + 1
            self.requests.append((key, body))
            self.headers.append({**headers, "path": path})
            tries = self._tries[key]
        try:
            return self.answer(body, tries)
        finally:
            with self._guard:
                self._here -= 1

    @property
    def bodies(self) -> list[Any]:
        return [body for _, body in self.requests]

    @property
    def by_key(self) -> dict[str, Any]:
        """What a server keeps that goes by the idempotency key."""
        return dict(self.requests)


@contextmanager
def web_server() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            site.raw.append(raw)
            found = site.take(self.path, dict(self.headers.items()), json.loads(raw))
            if found is None:
                self.close_connection = True
                return
            status, text, headers = (*(found if isinstance(found, tuple) else (found,)), "", {})[:3]
            self.send_response(status)
            for name, value in (headers if isinstance(headers, dict) else {}).items():
                self.send_header(name, value)
            # An answer that promises more than it has is cut off where it ends.
            self.close_connection = "Content-Length" in headers
            if not self.close_connection:
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal of the tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_address[1]}/orders"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
