"""A server that greets in a way that is not MySQL's: an error of ours names its address."""

from __future__ import annotations

import socket
import threading

import pytest

from potok.sources.cdc.mysql.server import DatabaseUnreachable, Server, settings_of
from potok.topology.capture import Capture


@pytest.mark.parametrize(
    "greeting",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\xff" * 60,
        b"\x10\x00\x00\x00\x0a\xe3\xc6\x08;0\x90\x1b\x06N\x85=-\x91<S",
        b"\x06\x00\x00\x00\x0a\xd0L\x00\x80O",
        b"\x16\x00\x00\x00\x0a\xcd\x18\xf0B\x5c%\xbb\x89\xa70W\xba\xf0ytd2\xc6\xf1\x97\x86",
        b"\x01\x00\x00\x00\x0a",
    ],
)
def test_a_server_that_greets_otherwise_is_named(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def greet() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(greeting)

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(DatabaseUnreachable, match=f":{port}"):
            Server(Capture(url=f"mysql://u:p@127.0.0.1:{port}/d", tables=("a",)))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (None, None)),
        ("?ssl_ca=ca.pem", (True, True)),
        ("?unix_socket=/s&ssl_ca=ca.pem", (True, False)),
    ],
)
def test_the_certificate_of_a_server_is_verified_if_its_authority_is_given(query: str, expected: object) -> None:
    found = settings_of(f"mysql://u:p@host/d{query}")
    assert (found.get("ssl_verify_cert"), found.get("ssl_verify_identity")) == expected
