"""Pages of an app, as data: which function answers which path. A server hosts them; this module does not listen."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ClassVar
from urllib.parse import quote

import orjson

from potok.errors import TopologyError
from potok.faust.pages import errors as exceptions
from potok.faust.pages.blueprints import Blueprint
from potok.faust.pages.errors import MethodNotAllowed, NotFound, WebError
from potok.faust.pages.request import Request
from potok.faust.records.fields import ValidationError
from potok.faust.records.model import plain
from potok.faust.records.record import Record
from potok.faust.services.loop import called
from potok.faust.tables.external import SeenWindows

__all__ = [
    "Blueprint",
    "NotFound",
    "Request",
    "Response",
    "Route",
    "View",
    "Web",
    "WebError",
    "exceptions",
    "gives_model",
    "takes_model",
]


def __dir__() -> list[str]:
    return sorted(__all__)


METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "search")
PROBLEM = "application/problem+json"
PART = re.compile(r"\{(\w+)(?::((?:[^{}]|\{[^{}]*\})+))?\}")
"""A part of a path: `{user_id}`, or `{user_id:[0-9]+}` with a pattern."""


class NoSuchPage(TopologyError):
    """A link to a page that does not exist."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f'there is no page "{name}"', hint=f"the pages are: {', '.join(sorted(known)) or 'none'}")


@dataclass(frozen=True, slots=True)
class Response:
    """A response: bytes, with their media type."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


def _dumped(value: Any) -> bytes:
    return orjson.dumps(plain(value), _other, orjson.OPT_NON_STR_KEYS)


def _other(value: Any) -> Any:
    if isinstance(value, Record):
        return value.asdict()
    if isinstance(value, SeenWindows):
        return plain(value.value())
    return list(value) if isinstance(value, set | frozenset) else str(value)


class Web:
    """Creates the response of a page: `return web.json({...})`, `raise web.NotFound("no such user")`."""

    WebError: ClassVar = exceptions.WebError
    ServerError: ClassVar = exceptions.ServerError
    ValidationError: ClassVar = exceptions.ValidationError
    ParseError: ClassVar = exceptions.ParseError
    NotAuthenticated: ClassVar = exceptions.NotAuthenticated
    PermissionDenied: ClassVar = exceptions.PermissionDenied
    NotFound: ClassVar = exceptions.NotFound
    MethodNotAllowed: ClassVar = exceptions.MethodNotAllowed

    def __init__(self, app: Any = None) -> None:
        self.app = app

    def json(
        self,
        value: Any,
        *,
        content_type: str | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **_: Any,
    ) -> Response:
        return Response(_dumped(value), status, content_type or "application/json", headers or {})

    def text(
        self,
        value: str,
        *,
        content_type: str | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **_: Any,
    ) -> Response:
        return Response(value.encode(), status, content_type or "text/plain; charset=utf-8", headers or {})

    def html(self, value: str, *, content_type: str | None = None, **more: Any) -> Response:
        return self.text(value, content_type=content_type or "text/html; charset=utf-8", **more)

    def bytes(
        self,
        value: bytes,
        *,
        content_type: str | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **_: Any,
    ) -> Response:
        return Response(value, status, content_type or "application/octet-stream", headers or {})

    def redirect(self, location: Any, *, status: int = 302, headers: Mapping[str, str] | None = None) -> Response:
        return Response(b"", status, "text/plain; charset=utf-8", {**(headers or {}), "Location": str(location)})

    def notfound(self, reason: str = "not found", **more: Any) -> Response:
        return self.error(404, reason, **more)

    def error(self, status: int, reason: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
        return refused(WebError(reason, code=status, **more), headers)

    def path_for(self, view_name: str, **parts: Any) -> str:
        """Return the path of a page by its name: that of its function or class, or `blueprint:name`."""
        routes = {route.name: route for route in self.app.web_routes()}
        if view_name not in routes:
            raise NoSuchPage(view_name, list(routes))
        return PART.sub(lambda found: quote(str(parts[found[1]]), safe=""), routes[view_name].path)

    def url_for(self, view_name: str, _base_url: Any = None, **parts: Any) -> str:
        base = self.app.web.url if _base_url is None else str(_base_url)
        return base.rstrip("/") + self.path_for(view_name, **parts)

    async def read_request_content(self, request: Request) -> Any:
        return await request.read()


class View(Web):
    """A page as a class: `async def get(self, request, user_id)`, `post` and so on."""

    def __init__(self, app: Any, web: Any = None) -> None:
        super().__init__(app)
        self.web = web

    async def dispatch(self, request: Request, **parts: Any) -> Any:
        handler = getattr(self, request.method.lower(), None)
        if handler is None:
            raise MethodNotAllowed(f"the page does not support {request.method}")
        return await called(handler, request, **parts)

    async def on_request_error(self, request: Request, exc: WebError) -> Any:
        """Return the response when the page raised a `WebError`."""
        return refused(exc)


Endpoint = Callable[..., Awaitable[Any]]
"""Called with the request and the parts of the path by name; whatever it returns, `answer` makes a response of it."""


@dataclass(frozen=True, slots=True)
class Route:
    """One path such as `/stats/{user_id}/`, its methods in upper case, and its handler."""

    path: str
    methods: tuple[str, ...]
    endpoint: Endpoint
    name: str
    app: Any = None

    async def respond(self, method: str, path: str, **asked: Any) -> Response:
        """Answer one request, in the loop of the app. Exceptions of the page other than `WebError` are reported by
        the server.
        """
        work = self._responded(Request.of(self.app, method, path, **asked))
        return await (work if self.app is None else self.app.own_loop.run(work))

    async def _responded(self, request: Request) -> Response:
        try:
            return answer(await self.endpoint(request, **request.match_info))
        except WebError as error:
            return refused(error)


def route_of(
    app: Any, path: str, handler: Any, methods: tuple[str, ...], *, base: type[View] = View, name: str = ""
) -> Route:
    """Return a route of a function of (web, request, **parts), or of a `View` class."""
    if isinstance(handler, type) and issubclass(handler, View):
        found = tuple(method.upper() for method in METHODS if hasattr(handler, method))
        return Route(path, found, _dispatch(app, handler), name or handler.__name__, app)

    async def of_function(request: Request, **parts: Any) -> Any:
        return await called(handler, base(app), request, **parts)

    return Route(path, methods, of_function, name or getattr(handler, "__name__", path), app)


def _dispatch(app: Any, kind: type[View]) -> Endpoint:
    async def of_class(request: Request, **parts: Any) -> Any:
        view = kind(app)
        try:
            return await view.dispatch(request, **parts)
        except WebError as error:
            return await called(view.on_request_error, request, error)

    return of_class


def answer(made: Any) -> Response:
    """Return the result of a page as a response; plain data is JSON, text is text."""
    if isinstance(made, Response):
        return made
    if isinstance(made, bytes):
        return Web().bytes(made)
    return Web().text(made) if isinstance(made, str) else Web().json(made)


def refused(error: WebError, headers: Mapping[str, str] | None = None) -> Response:
    return Response(_dumped(error.problem()), error.status, PROBLEM, headers or {})


def takes_model(model: type[Record]) -> Callable[[Any], Any]:
    """Call a page with a record parsed from the JSON body: `async def post(self, request, order)`."""

    def decorate(function: Any) -> Any:
        @wraps(function)
        async def page(view: Any, request: Request, *args: Any, **parts: Any) -> Any:
            try:
                record = model.from_data(await request.json())
            except ValidationError as error:
                raise exceptions.ValidationError(error.message) from error
            return await called(function, view, request, record, *args, **parts)

        return page

    return decorate


def gives_model(model: type[Record]) -> Callable[[Any], Any]:  # noqa: ARG001 - as Faust has it
    """Answer with the record that a page returns, as JSON."""

    def decorate(function: Any) -> Any:
        @wraps(function)
        async def page(view: Any, request: Request, *args: Any, **parts: Any) -> Any:
            return view.json(await called(function, view, request, *args, **parts))

        return page

    return decorate
