"""A client that speaks HTTP/2 frame by frame, and opens its windows only on request."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingAckReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)

GET = "GET"


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_whole: bool = False
    reset: int | None = None


class Http2Client:
    def __init__(self, port: int) -> None:
        self.connection = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._authority = f"127.0.0.1:{port}"
        self.answers: dict[int, Answer] = {}
        self.is_over, self.pings = False, 0
        self.went_away: int | None = None
        self.connection.initiate_connection()
        self.flush()

    def __enter__(self) -> Http2Client:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._socket.close()

    def flush(self) -> None:
        try:
            self._socket.sendall(self.connection.data_to_send())
        except (BrokenPipeError, ConnectionResetError):
            self.is_over = True

    def ask(
        self, path: str, method: str = GET, *, body: bytes | None = None, headers: tuple[tuple[str, str], ...] = ()
    ) -> int:
        """Send a request; without a body, its head ends it."""
        stream = self.connection.get_next_available_stream_id()
        pseudo = [(":method", method), (":path", path), (":scheme", "http"), (":authority", self._authority)]
        self.connection.send_headers(stream, [*pseudo, *headers], end_stream=body is None)
        if body is not None:
            self.connection.send_data(stream, body, end_stream=True)
        self.answers[stream] = Answer()
        self.flush()
        return stream

    def until(self, done: Callable[[], bool], *, accept: bool = True) -> None:
        """Read until something is there, or the connection ends; `accept` opens the windows again."""
        while not done() and not self.is_over:
            try:
                data = self._socket.recv(65_536)
            except ConnectionResetError:
                data = b""
            if not data:
                self.is_over = True
                return
            for event in self.connection.receive_data(data):
                self._take(event, accept=accept)
            self.flush()

    def _take(self, event: Event, *, accept: bool) -> None:
        match event:
            case ResponseReceived():
                headers = dict(event.headers or ())
                answer = self.answers[event.stream_id or 0]
                answer.status, answer.headers = int(headers.pop(":status")), headers  # type: ignore[call-overload]
            case DataReceived():
                self.answers[event.stream_id or 0].body += event.data or b""
                if accept:
                    self.connection.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            case StreamEnded():
                self.answers[event.stream_id or 0].is_whole = True
            case StreamReset():
                self.answers[event.stream_id or 0].reset = int(event.error_code or 0)
            case PingAckReceived():
                self.pings += 1
            case ConnectionTerminated():
                self.went_away = int(event.error_code or 0)

    def get(self, path: str, method: str = GET, **given: object) -> Answer:
        stream = self.ask(path, method, **given)  # type: ignore[arg-type]
        self.until(lambda: self.answers[stream].is_whole or self.answers[stream].reset is not None)
        return self.answers[stream]
