"""The web application behind the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from fastapi import FastAPI, Query, Response
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from potok.server.console.feed import Feed, UnknownTable
from potok.server.console.live import Live

STATIC = Path(__file__).parent / "static"

# The page shows values of records, so it may run only its own code and connect only to this server.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


HOSTS = ["127.0.0.1", "localhost"]


def create_app(feed: Feed, *, interval: float = 0.4) -> FastAPI:
    """The page and its API over one feed.

    `/` is the page; `/api/topology`, `/api/snapshot` and `/api/tables/{name}` are JSON; `/api/live` is a stream of
    server-sent events, one snapshot every `interval` seconds.
    """
    live = Live(feed, interval)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with live.running():
            yield

    app = FastAPI(title="Potok", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.live = live
    app.add_middleware(WithHeaders)
    # Against DNS rebinding: another site's name may resolve to this machine.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=HOSTS, www_redirect=False)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", media_type="text/html")

    @app.get("/api/topology")
    async def topology() -> Response:
        return _json(await asyncio.to_thread(feed.topology))

    @app.get("/api/snapshot")
    async def snapshot() -> Response:
        return _json(live.snapshot())

    @app.get("/api/live")
    async def events() -> StreamingResponse:
        return StreamingResponse(live.events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    @app.get("/api/tables/{name}")
    async def table(name: str, find: str = "", limit: int = Query(50, ge=1, le=500)) -> Response:
        try:
            return _json(await asyncio.to_thread(feed.rows, name, find, limit))
        except UnknownTable as error:
            return _json({"error": error.message, "hint": error.hint}, status=404)

    return app


class WithHeaders:
    """Adds the headers to every response without buffering event streams."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


def _json(content: Any, status: int = 200) -> Response:
    # Keys and values of records may have any type; those without a JSON form are shown as text.
    body = orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS)
    return Response(body, status_code=status, media_type="application/json")
