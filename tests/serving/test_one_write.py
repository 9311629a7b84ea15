from __future__ import annotations

import asyncio
from typing import Any

from potok.serving.one_write import _HeadFirst


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

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0


def run(work: Any) -> Wire:
    async def in_loop() -> Wire:
        wire = Wire()
        await work(_HeadFirst(wire, asyncio.get_running_loop()), wire)  # type: ignore[arg-type]
        return wire

    return asyncio.run(in_loop())


def test_head_and_body_leave_in_one_piece() -> None:
    async def answer(transport: _HeadFirst, wire: Wire) -> None:
        transport.write(b"head ")
        transport.write(b"body")
        assert wire.pieces == [b"head body"]
        await asyncio.sleep(0)

    assert run(answer).pieces == [b"head body"]


def test_a_head_without_a_body_does_not_wait_for_one() -> None:
    async def stream(transport: _HeadFirst, wire: Wire) -> None:
        transport.write(b"head")
        await asyncio.sleep(0)
        assert wire.pieces == [b"head"]
        transport.write(b"event")
        transport.write(b"event")

    assert run(stream).pieces == [b"head", b"event", b"event"]


def test_what_waits_leaves_before_the_end() -> None:
    async def cut_short(transport: _HeadFirst, wire: Wire) -> None:
        transport.write(b"head")
        transport.close()
        assert transport.is_closing()

    wire = run(cut_short)
    assert (wire.pieces, wire.closed) == ([b"head"], True)
