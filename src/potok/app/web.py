"""Pages of an app, as data: what answers which path. A server hosts them; nothing here listens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from potok.app.record import plain

METHODS = ("get", "head", "post", "put", "patch", "delete", "options")


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: bytes, with what they are."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class Web:
    """What a page is given to answer with: `return web.json({...})`."""

    def json(self, value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        body = orjson.dumps(plain(value), str, orjson.OPT_NON_STR_KEYS)
        return Response(body, status, headers=headers or {})

    def text(
        self,
        value: str,
        *,
        content_type: str = "text/plain; charset=utf-8",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        return Response(value.encode(), status, content_type, headers or {})

    def html(self, value: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        return self.text(value, content_type="text/html; charset=utf-8", status=status, headers=headers)

    def bytes(
        self,
        value: bytes,
        *,
        content_type: str = "application/octet-stream",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        return Response(value, status, content_type, headers or {})

    def notfound(self, reason: str = "not found", **more: Any) -> Response:
        return self.error(404, reason, **more)

    def error(self, status: int, reason: str, **more: Any) -> Response:
        return self.json({"error": reason, **more}, status=status)


class View(Web):
    """A page as a class: `async def get(self, request, user_id)`, `post` and so on."""

    def __init__(self, app: Any) -> None:
        self.app = app


Endpoint = Callable[..., Awaitable[Any]]
"""Called with the request and the parts of the path by name; whatever it returns, `answer` makes a response of it."""


@dataclass(frozen=True, slots=True)
class Route:
    """One path such as `/stats/{user_id}/`, its methods in capitals, and who answers."""

    path: str
    methods: tuple[str, ...]
    endpoint: Endpoint
    name: str


def route_of(app: Any, path: str, handler: Any, methods: tuple[str, ...]) -> Route:
    """A route of a function of (web, request, **parts), or of a `View` class."""
    if isinstance(handler, type) and issubclass(handler, View):
        found = tuple(method.upper() for method in METHODS if hasattr(handler, method))

        async def of_class(request: Any, **parts: Any) -> Any:
            return await getattr(handler(app), request.method.lower())(request, **parts)

        return Route(path, found, of_class, handler.__name__)

    async def of_function(request: Any, **parts: Any) -> Any:
        return await handler(Web(), request, **parts)

    return Route(path, methods, of_function, getattr(handler, "__name__", path))


def answer(made: Any) -> Response:
    """What a page returned as a response; plain data is JSON, text is text."""
    if isinstance(made, Response):
        return made
    return Web().text(made) if isinstance(made, str) else Web().json(made)
