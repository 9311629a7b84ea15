"""A URL that leads to a server of another kind: an error of ours says so, whatever that server answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from potok.errors import PotokError
from potok.metadata.open import open_metadata
from potok.sinks.opensearch.opensearch import OpenSearchTarget
from potok.sinks.redis.redis import RedisTarget
from potok.sinks.sink_spec import Types
from potok.sources.cdc.postgres.server import connect
from potok.state.open import open_store
from sinks.rows import opening, typed

TYPES = Types(typed("string"), typed("a int"))

ANSWERS = {
    "nothing": b"",
    "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "tls": b"\x15\x03\x01\x00\x02\x02\x46",
    "postgres": b"E\x00\x00\x00\x17SFATAL\x00CXX000\x00Mno\x00\x00",
    "bytes": b"\xff" * 200,
    "text": b"+OK\r\n",
    "number": b":5\r\n",
    "null": b"$-1\r\n",
    "list": b"*0\r\n",
    "binary": b"$4\r\n\xff\xfe\xfd\xfc\r\n",
    "error": b"-ERR unknown command\r\n",
}

CLIENTS: dict[str, Callable[[int], object]] = {
    "metadata in redis": lambda port: open_metadata(f"redis://127.0.0.1:{port}/0").get_metadata("x"),
    "state in redis": lambda port: open_store(f"redis://127.0.0.1:{port}/0", "q", 0).get_many("t", [b"a"]),
    "sink to redis": lambda port: RedisTarget(f"redis://127.0.0.1:{port}/0", "p:", "json", None, 1).open(
        opening(TYPES)
    ),
    "metadata in postgres": lambda port: open_metadata(f"postgresql://u@127.0.0.1:{port}/d"),
    "capture from postgres": lambda port: connect(f"postgresql://u@127.0.0.1:{port}/d"),
    "state in cassandra": lambda port: open_store(f"cassandra://u@127.0.0.1:{port}/k", "q", 0),
    "metadata in cassandra": lambda port: open_metadata(f"cassandra://u@127.0.0.1:{port}/k"),
    "sink to opensearch": lambda port: OpenSearchTarget(f"http://127.0.0.1:{port}", "i", (), 9, 1_000, 1).open(
        opening(TYPES)
    ),
}


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A server that answers everything in one way, or hangs up."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection: socket.socket) -> None:
        with connection:
            try:
                while connection.recv(1 << 16) and answer:
                    connection.sendall(answer)
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    with listening:
        yield listening.getsockname()[1]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One attempt without pauses, of a client that does not wait for the rest of an answer."""
    monkeypatch.setattr("potok.backends.redis_connection.TRIES", 0)
    monkeypatch.setattr("potok.backends.redis_connection.TIMEOUT_S", 0.2)
    monkeypatch.setattr("potok.sinks.redis.writer.TIMEOUT_S", 0.2)
    monkeypatch.setattr("potok.backends.postgres.connections.BRIEFLY_MS", 1)
    monkeypatch.setattr("potok.backends.cassandra.connection.BRIEFLY_MS", 1)
    monkeypatch.setattr("potok.backends.cassandra.connection.CONNECT_S", 0.2)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_server_of_another_kind_is_an_error_that_names_the_address(answer: str, client: str) -> None:
    with answering(ANSWERS[answer]) as port, pytest.raises(PotokError) as caught:
        CLIENTS[client](port)
    assert f":{port}" in str(caught.value)
