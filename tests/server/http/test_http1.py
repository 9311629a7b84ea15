"""HTTP/1.1 as it goes over the wire: how many writes an answer takes, and what ends a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from potok.server.http.http1 import Http1Protocol

ASKS = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Wire:
    """A transport that keeps what is written to it, piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.pieces.append(data)

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, _name: str) -> None:
        return None


def start(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": 200, "headers": [*headers]}


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def talk(app: Callable[[Any, Wire], Awaitable[None]], asked: bytes = ASKS) -> Wire:
    """What an application writes to a client that sends these bytes."""

    async def in_loop() -> Wire:
        wire = Wire()

        async def called(_scope: Any, _receive: Any, send: Any) -> None:
            await app(send, wire)

        state = SimpleNamespace(connections=set(), tasks=set(), default_headers=[], total_requests=0)
        config = uvicorn.Config(called, log_config=None)
        config.load()
        config.loaded_app = called
        protocol = Http1Protocol(config, state, {})
        protocol.connection_made(wire)  # type: ignore[arg-type]
        protocol.data_received(asked)
        while state.tasks:
            await asyncio.gather(*state.tasks)
        protocol.connection_lost(None)
        return wire

    return asyncio.run(in_loop())


def test_head_and_body_leave_in_one_piece() -> None:
    async def answer(send: Any, wire: Wire) -> None:
        await send(start((b"content-length", b"4")))
        assert wire.pieces == []
        await send(body(b"body"))

    assert talk(answer).pieces == [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody"]


def test_a_head_without_a_body_does_not_wait_for_one() -> None:
    async def stream(send: Any, wire: Wire) -> None:
        await send(start())
        await asyncio.sleep(0)
        assert wire.pieces == [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]
        await send(body(b"event", more=True))
        await send(body(b""))

    assert talk(stream).pieces[1:] == [b"5\r\nevent\r\n", b"0\r\n\r\n"]


def test_a_failure_behind_the_head_closes_the_connection_after_the_head() -> None:
    async def fails(send: Any, _wire: Wire) -> None:
        await send(start())
        raise RuntimeError("too late for another status")

    wire = talk(fails)
    assert (wire.pieces, wire.closed) == ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"], True)


@pytest.mark.parametrize("header", [(b"x", b"a\r\nset-cookie: b"), (b"x\n", b"a"), (b"x", b"a\0b")])
def test_a_header_with_a_line_break_is_not_sent(header: tuple[bytes, bytes]) -> None:
    async def splits(send: Any, _wire: Wire) -> None:
        await send(start(header))

    wire = talk(splits)
    assert wire.pieces[0].startswith(b"HTTP/1.1 500 ")
    assert b"cookie" not in wire.pieces[0]


@pytest.mark.parametrize("data", [b"long", b""])
def test_a_body_of_another_length_than_announced_closes_the_connection(data: bytes) -> None:
    async def lies(send: Any, _wire: Wire) -> None:
        await send(start((b"content-length", b"2")))
        await send(body(data))

    wire = talk(lies)
    assert (wire.closed, wire.pieces) == (True, [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"])


@pytest.mark.parametrize(
    ("asked", "ends"),
    [
        (b"GET / HTTP/1.0\r\nHost: a\r\n\r\n", b"\r\nconnection: close\r\n\r\nbody"),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"\r\nconnection: close\r\n\r\n"),
    ],
)
def test_an_answer_without_a_length_to_an_old_client_ends_with_the_connection(asked: bytes, ends: bytes) -> None:
    async def answer(send: Any, _wire: Wire) -> None:
        await send(start())
        await send(body(b"body"))

    wire = talk(answer, asked)
    assert wire.closed
    assert b"".join(wire.pieces).endswith(ends)


def test_answers_leave_in_the_order_of_the_requests_and_none_behind_the_last_one() -> None:
    count = 0

    async def number(send: Any, _wire: Wire) -> None:
        nonlocal count
        count += 1
        await asyncio.sleep(0)
        await send(start((b"content-length", b"1")))
        await send(body(b"%d" % count))

    last = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    wire = talk(number, ASKS + ASKS + last + ASKS)
    assert [piece[-1:] for piece in wire.pieces] == [b"1", b"2", b"3"]
    assert wire.closed


def test_bytes_that_are_not_a_request_do_not_interrupt_a_response() -> None:
    async def answer(send: Any, wire: Wire) -> None:
        assert wire.closed
        await send(start())

    assert talk(answer, ASKS + b"\xff\xff\r\n\r\n").pieces == []
