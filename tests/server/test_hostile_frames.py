"""Whatever frames are sent over HTTP/2 or a WebSocket: at most their connection ends, and no failure is logged."""

from __future__ import annotations

import errno
import json
import logging
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random

import httpx
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from tests import hostile

from potok.server.server import Server
from server.conftest import SHOP
from server.test_floods import UPGRADE
from statements.playing import Play

CLOSED = (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN)
"""The server has closed the connection."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = struct.pack("!HBBBL", 0, 0, 4, 0, 0)
HEADERS = bytes.fromhex("8286844103612e62")
"""GET / of a.b in HPACK."""
BLOCKS = [
    HEADERS,
    *(b"", b"\xff" * 40, b"\x00", b"\x82" * 200, HEADERS + b"\x00\x01\xff\x01\xfe", HEADERS + b"\x40\x01:\x01x"),
    *(b"\x3f\xe1\xff\xff\xff\x0f", b"\xbe", b"\x82\x82\x84", b"\x84"),
]
TEXTS = [
    *(b"", b"a", b"\xff\xfe\xed\xa0\x80", b"x" * 125, b"\x03\xe8bye", b"\x03\xe8\xff\xff", b"\x00\x01", b"\x03"),
    *(b"\x10\x00" * 50, b"x" * 5_000),
]


def http2_frame(random: Random) -> bytes:
    kind = random.choice([0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10, 99])
    payload = random.choice([*BLOCKS, random.randbytes(random.choice([1, 4, 5, 6, 8, 9, 300])), b"\0" * 4, b"\0" * 8])
    length = random.choice([len(payload)] * 8 + [0, 1, 16_384, (1 << 24) - 1])
    flags = random.choice([0, 1, 4, 5, 8, 0x20, 0x2D, 0xFF])
    stream = random.choice([0, 1, 1, 1, 2, 3, 3, 5, 7, (1 << 31) - 1, 1 << 31])
    return struct.pack("!BHBBL", length >> 16, length & 0xFFFF, kind, flags, stream) + payload


def web_socket_frame(random: Random) -> bytes:
    first = random.choice([0x80, 0x80, 0, 0x40, 0x70, 0xC0]) | random.choice([0, 0, 1, 1, 2, 3, 8, 9, 10, 11, 15])
    payload, masked = random.choice(TEXTS), random.choice([0x80] * 6 + [0])
    length = random.choice([len(payload)] * 8 + [len(payload) + 1, 0, 1 << 40, (1 << 64) - 1])
    if length < 126:
        size = struct.pack("!BB", first, masked | length)
    elif length < 1 << 16:
        size = struct.pack("!BBH", first, masked | 126, length)
    else:
        size = struct.pack("!BBQ", first, masked | 127, length)
    return size + (b"\0" * 4 if masked else b"") + payload


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    play = Play(Path(tmp_path_factory.mktemp("shop")))
    play.do(SHOP)
    with Server(play.database, port=0) as found:
        yield found
    play.close()


class Failures(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))


@pytest.fixture(scope="module")
def failures() -> Iterator[Failures]:
    handler = Failures()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def send_and_leave(server: Server, opening: bytes, frames: list[bytes]) -> bytes:
    """What comes back until the server has read everything, or closes the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
        try:
            caller.sendall(opening)
            received += caller.recv(65_536)
            for frame in frames:
                caller.sendall(frame)
            caller.shutdown(socket.SHUT_WR)
            while piece := caller.recv(65_536):
                received += piece
        except OSError as error:
            if error.errno not in CLOSED:
                raise
    return received


def check(server: Server, failures: Failures) -> None:
    assert httpx.get(f"{server.url}/info").status_code == 200
    assert failures.found == []


@hostile.explored(60)
@given(random=st.randoms(use_true_random=False))
def test_hostile_frames_of_http2_end_their_connection_and_nothing_else(
    server: Server, failures: Failures, random: Random
) -> None:
    frames = [http2_frame(random) for _ in range(random.choice([1, 3, 20]))]
    note(json.dumps([frame[:60].hex() for frame in frames]))
    opening = PREFACE + (SETTINGS if random.random() < 0.9 else b"")
    received = send_and_leave(server, opening, frames)
    assert b"Internal Server Error" not in received
    check(server, failures)


@hostile.explored(60)
@given(random=st.randoms(use_true_random=False))
def test_hostile_frames_of_a_web_socket_end_their_connection_and_nothing_else(
    server: Server, failures: Failures, random: Random
) -> None:
    frames = [web_socket_frame(random) for _ in range(random.choice([1, 3, 20]))]
    note(json.dumps([frame[:60].hex() for frame in frames]))
    received = send_and_leave(server, UPGRADE, frames)
    assert b" 101 " in received
    check(server, failures)
    assert server.app.state.site.unsent.total == 0
