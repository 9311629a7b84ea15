"""The web console: static files without data, which call the API of the server."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from potok.server.access.guard import CONSOLE

STATIC = Path(__file__).parent / "static"

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)

HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)
"""The pages show values of records, so they may run only their own code and connect only to this server."""

mimetypes.add_type("text/javascript", ".js")


def console_routes() -> list[BaseRoute]:
    """The page at `/console/` and its files, which need no token because they contain no data."""
    return [
        Route(CONSOLE.rstrip("/"), _to_console, methods=["GET"], include_in_schema=False),
        Route(CONSOLE, _page, methods=["GET"], include_in_schema=False),
        Mount(f"{CONSOLE}static", _WithHeaders(StaticFiles(directory=STATIC))),
    ]


def start_page() -> Route:
    """`/` leads to the console, unless the program has a page there."""
    return Route("/", _to_console, methods=["GET"], include_in_schema=False)


async def _to_console(request: Request) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}{CONSOLE}", 307)


async def _page(_: Request) -> Response:
    headers = {name.decode(): value.decode() for name, value in HEADERS}
    return FileResponse(STATIC / "index.html", media_type="text/html", headers=headers)


class _WithHeaders:
    """Adds the headers to every file."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        await self._app(scope, receive, with_headers)
