"""Blueprints: groups of pages that can be mounted under a path of any app."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from potok.errors import Location, TopologyError

_logger = logging.getLogger("potok.faust")


@dataclass(frozen=True, slots=True)
class Static:
    """A directory or a file below a path."""

    prefix: str
    path: Path


def static_of(prefix: str, file: Path | str) -> Static:
    """Return the files to serve; raise if they do not exist."""
    path = Path(file).resolve()
    if not path.exists():
        raise TopologyError(
            f'there is no file or directory "{file}" to serve at {prefix}',
            hint="name an existing path, relative to the directory where the program is started",
            at=Location.of_caller(),
        )
    return Static("/" + prefix.strip("/"), path)


class Blueprint:
    """Pages and files that can be mounted under any path.

    >>> users = Blueprint("users")
    >>> @users.route("/{user_id}/", name="detail")
    ... class User(View): ...
    >>> app.web.blueprints.add("/users/", users)
    """

    def __init__(self, name: str, *, url_prefix: str | None = None) -> None:
        self.name, self.url_prefix = name, url_prefix
        self.routes: list[tuple[str, Any, dict[str, Any]]] = []
        self.files: list[tuple[str, Path | str]] = []

    def __repr__(self) -> str:
        return f'<Blueprint "{self.name}">'

    def route(self, uri: str, *, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Answer a path below that of the blueprint, like `app.page`; the page's name is `blueprint:name`."""

        def decorate(handler: Any) -> Any:
            self.routes.append((uri, handler, {**options, "name": f"{self.name}:{name or handler.__name__}"}))
            return handler

        return decorate

    def static(self, uri: str, file_or_directory: str | Path, *, name: str | None = None) -> None:
        self.files.append((uri, file_or_directory))

    def register(self, app: Any, *, url_prefix: str | None = None) -> None:
        """Mount the pages under a path of an app."""
        prefix = url_prefix or self.url_prefix or "/"
        for uri, handler, options in self.routes:
            app.page(joined(prefix, uri), **options)(handler)
        for uri, file in self.files:
            app.web.add_static(joined(prefix, uri), file)

    def cache(self, timeout: Any = None, **_: Any) -> Cache:
        return Cache(self.name, timeout)


class Cache:
    """Faust's cache of responses, without effect: reading a table is as fast as a cache."""

    def __init__(self, name: str, timeout: Any) -> None:
        self.timeout = timeout
        _logger.info("blueprint %s: answers are not cached, tables are read each time", name)

    def view(self, **_: Any) -> Callable[[Any], Any]:
        return lambda function: function


class Blueprints:
    """The blueprints of an app, by their paths."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def add(self, prefix: str, blueprint: Blueprint | str) -> None:
        """Mount a blueprint under a path; text names a module and an attribute: `"shop.users:blueprint"`."""
        found = resolve_name(blueprint) if isinstance(blueprint, str) else blueprint
        found = getattr(found, "blueprint", found)
        if not isinstance(found, Blueprint):
            raise TopologyError(
                f"{blueprint!r} is not a blueprint",
                hint='write web.Blueprint("users"), or the name of one: "shop.users:blueprint"',
                at=Location.of_caller(),
            )
        found.register(self._app, url_prefix=prefix)


def joined(prefix: str, uri: str) -> str:
    return f"/{prefix.strip('/')}/{uri.lstrip('/')}".replace("//", "/")


def routed(app: Any, given: tuple[Any, Any, Any, Any]) -> Callable[[Any], Any]:
    """Return the handler itself: Faust chooses a worker by the key, but here every worker sees all rows."""
    keyed, *names = given
    if not any(names):
        raise TopologyError(
            f"{keyed!r} has no key",
            hint="say where its key is: match_info= for a part of the path, query_param=, or exact_key=",
            at=Location.of_caller(),
        )
    if keyed.app is not app:
        raise TopologyError(
            f'{keyed!r} belongs to app "{keyed.app.id}"', hint="route by one of this app", at=Location.of_caller()
        )
    return partial(_same)


def _same(function: Any) -> Any:
    return function
