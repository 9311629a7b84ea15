"""All routes of an application, and their status for a token, without reading endless responses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI

from potok.server.commands.routes import CommandRoute

SOCKET = "WEBSOCKET"


def routes_of(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Yield method and path of each route; HEAD is as GET."""
    yield from _below(app.router.routes)


def _below(routes: Any) -> Iterator[tuple[str, str]]:
    for route in routes:
        if hasattr(route, "original_router"):  # how FastAPI includes a router
            yield from _below(route.original_router.routes)
        elif isinstance(route, CommandRoute):
            yield "POST", "/commands/{aggregate}/{id}/{command}"
        elif type(route).__name__ in ("WebSocketRoute", "APIWebSocketRoute"):
            yield SOCKET, route.path
        else:
            for method in sorted(getattr(route, "methods", None) or {"GET"}):
                if method != "HEAD":
                    yield method, route.path


async def status_of(app: FastAPI, method: str, path: str, token: str | None, body: bytes = b"") -> int:
    """Return the status of a response when it begins; for a WebSocket that of the HTTP request that it is like."""
    plain, _, query = path.partition("?")
    headers = [(b"host", b"localhost")]
    if token is not None:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    scope = {
        "type": "websocket" if method == SOCKET else "http",
        "method": method,
        "path": plain,
        "raw_path": quote(plain, safe="/%").encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8088),
        "scheme": "http",
        "http_version": "1.1",
        "state": {},
        "app": app,
        "subprotocols": [],
    }
    begun: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiting = asyncio.Event()
    given = [{"type": "websocket.connect"} if method == SOCKET else {"type": "http.request", "body": body}]

    async def receive() -> Any:
        if given:
            return given.pop()
        await waiting.wait()  # the client neither sends more nor leaves
        return None

    async def send(message: Any) -> None:
        if begun.done():
            return
        if message["type"] == "http.response.start":
            begun.set_result(message["status"])
        elif message["type"] == "websocket.close":
            begun.set_result(_like(message.get("reason") or ""))
        elif message["type"] == "websocket.send":
            begun.set_result(_like(message["text"]))

    running = asyncio.ensure_future(app(scope, receive, send))
    done, _ = await asyncio.wait({running, begun}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    assert done, f"{method} {path} was not answered"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return begun.result()


def _like(text: str) -> int:
    return 403 if "may not" in text else 401 if "requires a token" in text else 200
