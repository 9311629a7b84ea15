"""The pages of an app."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from potok.errors import Location, TopologyError
from potok.faust.pages.blueprints import Blueprints, Static, joined, routed, static_of
from potok.faust.settings.options import PAGE, left_out
from potok.faust.web import Route, View, Web, route_of

if TYPE_CHECKING:
    from potok.faust.app import App
    from potok.faust.messaging.topic import Topic
    from potok.faust.tables.tables import Table
    from potok.faust.tables.windowed import WindowedTable

DEFAULT_PORT = 6066


class Pages(Web):
    """The type of `app.web`: the pages, files and blueprints of an app, and their URLs."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.routes: list[Route] = []
        self.files: list[Static] = []
        self.blueprints = Blueprints(app)
        self.served_at = ""

    @property
    def url(self) -> str:
        """Return the URL of the pages: the configured one, else the one they are or would be served at."""
        options = self.app.options
        canonical = options.get("canonical_url") or self.served_at
        return str(
            canonical or f"http://{options.get('web_host', 'localhost')}:{options.get('web_port', DEFAULT_PORT)}"
        )

    def add(self, path: str, handler: Any, methods: Sequence[str], base: type[View], name: str) -> None:
        if not path.startswith("/"):
            raise TopologyError(f'"{path}" is not a path', hint=f'write "/{path}"', at=Location.of_caller())
        chosen = tuple(method.upper() for method in methods)
        self.routes.append(route_of(self.app, path, handler, chosen, base=base, name=name))

    def route(self, pattern: str, handler: Any, cors_options: Any = None) -> None:
        self.app.page(pattern)(handler)

    def add_view(self, view_cls: type[View], *, prefix: str = "", cors_options: Any = None) -> View:
        """Answer the path that a class declares as its `view_path`."""
        path = getattr(view_cls, "view_path", "/")
        self.app.page(joined(prefix, path), name=getattr(view_cls, "view_name", ""))(view_cls)
        return view_cls(self.app, self)

    def add_static(self, prefix: str, path: Path | str, **_: Any) -> None:
        """Serve a file, or the files of a directory, below a path."""
        self.files.append(static_of(prefix, path))

    static = add_static


class WithPages:
    """The part of an app that defines pages."""

    web: Pages

    def page(
        self, path: str, *, methods: Sequence[str] = ("GET",), name: str = "", base: type[View] = View, **options: Any
    ) -> Callable[[Any], Any]:
        """Answer a path: with an async function of (web, request, and the parts of the path), or with a `View` class.

        >>> @app.page("/stats/{user_id}/")
        ... async def stats(web, request, user_id):
        ...     return web.json({"orders": order_counts.get(user_id, 0)})

        Args:
            path: `{user_id}` is any text up to the next slash, `{number:[0-9]+}` text that matches the pattern.
            methods: The methods of a function; a class answers the methods that it defines.
            name: The name of the page in links; by default that of the function or class.
            base: The class of the `web` argument of a function.
        """
        left_out(f"page {path}", options, PAGE)

        def decorate(handler: Any) -> Any:
            self.web.add(path, handler, methods, base, name)
            return handler

        return decorate

    def web_routes(self) -> list[Route]:
        """Return the pages, for a server to host."""
        return list(self.web.routes)

    def table_route(
        self,
        table: Table | WindowedTable,
        shard_param: str | None = None,
        *,
        query_param: str | None = None,
        match_info: str | None = None,
        exact_key: str | None = None,
    ) -> Callable[[Any], Any]:
        """Declare where the key of a table is in a request. It has no effect: every worker sees all rows and
        answers itself.
        """
        return routed(self, (table, shard_param or query_param, match_info, exact_key))

    def topic_route(
        self,
        topic: Topic,
        shard_param: str | None = None,
        *,
        query_param: str | None = None,
        match_info: str | None = None,
        exact_key: str | None = None,
    ) -> Callable[[Any], Any]:
        """Like `table_route`, for the key of a topic."""
        return routed(self, (topic, shard_param or query_param, match_info, exact_key))
