"""Pages of a program: its own paths and handlers, behind the same guard as all other paths."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, unquote

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from potok.server.access.guard import caller_of, is_open
from potok.server.access.tokens import READ, WRITE
from potok.server.context import site_of
from potok.server.errors import PageFailed, TooLong, WrongMethod
from potok.server.positions.headers import wait_as_asked
from potok.server.problems import problem_response

_logger = logging.getLogger(__name__)

SAFE = frozenset({"GET", "HEAD", "OPTIONS", "SEARCH"})
"""Methods that need only the scope `read`."""

_PLAIN = "/!$&'()*+,;=:@-._~"
_HEADER_NAME, _BREAKS = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"), re.compile(rb"[\x00\r\n]")
_PART = re.compile(r"\{(\w+)(?::((?:[^{}]|\{[^{}]*\})+))?\}")


class Answer(Protocol):
    """Response of a page: bytes and their type."""

    @property
    def body(self) -> bytes: ...
    @property
    def status(self) -> int: ...
    @property
    def content_type(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class Page(Protocol):
    """A path such as `/stats/{user_id}/`, its methods in upper case, and its handler."""

    @property
    def path(self) -> str: ...
    @property
    def methods(self) -> Collection[str]: ...

    def respond(self, method: str, path: str, **asked: Any) -> Coroutine[Any, Any, Answer]: ...


class Files(Protocol):
    """A directory, or a file, below a path."""

    @property
    def prefix(self) -> str: ...
    @property
    def path(self) -> Path: ...


class PageRoute(BaseRoute):
    """Route of one page. The handler runs in the event loop of the program, so that one that blocks delays only the
    program (a row of a million under load takes 4 ms that way, p99). The path is compared before it is decoded, so
    that a part may contain a slash as `%2F`."""

    def __init__(self, page: Page) -> None:
        self.path, self._page = page.path, page
        self.methods = {*page.methods, *(("HEAD",) if "GET" in page.methods else ())}
        self._pattern = re.compile(pattern_of(page.path))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        # Public paths belong to the server: a page there would respond without a token.
        if scope["type"] != "http" or is_open(scope["path"]):
            return Match.NONE, {}
        found = self._pattern.fullmatch(raw_path(scope))
        if found is None:
            return Match.NONE, {}
        parts = {name: unquote(text) for name, text in found.groupdict().items()}
        full = scope["method"] in self.methods
        return (Match.FULL if full else Match.PARTIAL), {"path_params": parts, "endpoint": self._page}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._answered(Request(scope, receive)))(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        method, page = request.method, self._page
        if method not in self.methods:
            refused = problem_response(WrongMethod(method, page.path, sorted(self.methods)))
            refused.headers["Allow"] = ", ".join(sorted(self.methods))
            return refused
        caller_of(request.scope).require(READ if method in SAFE else WRITE, page.path)
        asked = {
            "parts": request.path_params,
            "query": parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True),
            "headers": [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.scope["headers"]],
            "body": await request.body(),
            "remote": request.client.host if request.client else "",
            "scheme": request.scope.get("scheme", "http"),
        }
        site = site_of(request)
        await wait_as_asked(request, lambda: [info.query_id for info in site.database.queries()])
        verb, seconds = method if method in page.methods else "GET", site.limits.seconds
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return _response(await page.respond(verb, request.url.path, **asked))
        except Exception as error:
            if limit.expired():
                raise TooLong(seconds) from None
            # The program may raise anything: the client gets a 500, and the log the details.
            _logger.exception("page %s failed at %s %s", page.path, method, request.url.path)
            raise PageFailed(page.path) from error


def _response(made: Answer) -> Response:
    """Raise `ValueError` for an invalid response, which would otherwise break the connection."""
    if not 200 <= made.status <= 599:
        raise ValueError(f"{made.status} is not the status of a response")
    response = Response(made.body, made.status, dict(made.headers), media_type=made.content_type)
    for name, value in response.raw_headers:
        if not _HEADER_NAME.fullmatch(name) or _BREAKS.search(value):
            raise ValueError(f"the header {name!r} of the response is invalid")
    return response


def pattern_of(path: str) -> str:
    """Return the pattern of an encoded path: `{name}` is one part, `{name:[0-9]+}` matches the pattern."""
    found, end = "", 0
    for part in _PART.finditer(path):
        found += re.escape(quote(path[end : part.start()], safe=_PLAIN))
        found += f"(?P<{part[1]}>{part[2] or '[^/]+'})"
        end = part.end()
    return found + re.escape(quote(path[end:], safe=_PLAIN))


def raw_path(scope: Scope) -> str:
    raw = bytes(scope.get("raw_path") or b"").decode("latin-1")
    # The redirect for a missing trailing slash changes only the decoded path.
    return raw if raw and unquote(raw) == scope["path"] else quote(scope["path"], safe=_PLAIN)


def file_routes(files: Sequence[Files]) -> list[BaseRoute]:
    """Files of a program; matched after all other paths."""
    found: list[BaseRoute] = []
    for item in files:
        if item.path.is_dir():
            found.append(Mount(item.prefix, _Readable(item.prefix, StaticFiles(directory=item.path, html=True))))
        else:
            found.append(Route(item.prefix, _one_file(item.prefix, item.path)))
    return found


def _one_file(prefix: str, path: Path) -> Any:
    async def file(request: Request) -> Response:
        caller_of(request.scope).require(READ, prefix)
        return FileResponse(path)

    return file


class _Readable:
    """Serves files to clients with the scope `read`."""

    def __init__(self, prefix: str, files: ASGIApp) -> None:
        self._prefix, self._files = prefix or "/", files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller_of(scope).require(READ, self._prefix)
        await self._files(scope, receive, send)
