"""Clients that go, or stop taking what is sent, hold nothing of the server."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from websockets.sync.client import connect

from faults.drive import wait_until
from potok.server.server import Server
from potok.server.streaming import Streamed

PUSH = json.dumps({"sql": "SELECT * FROM orders EMIT CHANGES;"})


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"row\n"
        await asyncio.sleep(0)


class Client:
    """The other side of a response: takes so many pieces, then nothing until it is woken."""

    def __init__(self, takes: int) -> None:
        self.taken: list[bytes] = []
        self._takes = takes
        self.wakes = asyncio.Event()

    async def send(self, message: Any) -> None:
        if message["type"] != "http.response.body":
            return
        if len(self.taken) >= self._takes:
            await self.wakes.wait()
        self.taken.append(message["body"])

    async def stays(self) -> Any:
        await asyncio.Event().wait()


def test_a_client_that_stops_reading_is_disconnected_and_can_read_the_reason_later() -> None:
    asyncio.run(_stops_and_wakes())


async def _stops_and_wakes() -> None:
    client, let_go = Client(3), asyncio.Event()
    response: Any = Streamed(endless(), "text/plain", 0.01, let_go.set, b"too slow\n")
    answering = asyncio.ensure_future(response({}, client.stays, client.send))
    await let_go.wait()
    assert not answering.done()
    client.wakes.set()
    await answering
    assert client.taken == [b"row\n"] * 3 + [b"too slow\n"]


@pytest.mark.parametrize("moment", range(20))
def test_a_disconnect_during_a_write_ends_the_response(moment: int) -> None:
    asyncio.run(_goes(moment))


async def _goes(moment: int) -> None:
    client, ends = Client(1 << 30), list[int]()

    async def gone() -> Any:
        for _ in range(moment):
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    response: Any = Streamed(endless(), "text/plain", 30, lambda: ends.append(moment), b"")
    async with asyncio.timeout(30):
        await response({}, gone, client.send)
    assert set(ends) == {moment}


def places_are_given_back(server: Server) -> bool:
    return server.app.state.site.pushes._taken == 0


def test_clients_that_close_right_after_their_request_free_their_connections(server: Server) -> None:
    head = f"POST /query-stream HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: {len(PUSH)}\r\n\r\n"
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port)) as caller:
            caller.sendall((head + PUSH).encode())
    wait_until(lambda: places_are_given_back(server), "all places are given back", 30)


def test_web_sockets_that_close_right_after_their_request_free_their_connections(server: Server) -> None:
    asked = json.dumps({"ksql": "SELECT * FROM orders EMIT CHANGES;"})
    for _ in range(20):
        with connect(f"ws://127.0.0.1:{server.port}/ws/query?request={asked}".replace(" ", "%20")) as caller:
            caller.close()
    wait_until(lambda: places_are_given_back(server), "all places are given back", 30)
