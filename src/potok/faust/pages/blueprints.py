"""Pages that belong together: a blueprint is written once, and put under a path of any app."""

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
    place: Path


def static_of(prefix: str, place: Path | str) -> Static:
    """Raises where there is nothing to serve."""
    path = Path(place).resolve()
    if not path.exists():
        raise TopologyError(
            f'there is no file or directory "{place}" to serve at {prefix}',
            hint="name one that exists, from where the program is started",
            at=Location.of_caller(),
        )
    return Static("/" + prefix.strip("/"), path)


class Blueprint:
    """Pages and files that can be put under any path.

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
        """Answer a path below that of the blueprint, as `app.page` does; the page is called `blueprint:name`."""

        def decorate(handler: Any) -> Any:
            self.routes.append((uri, handler, {**options, "name": f"{self.name}:{name or handler.__name__}"}))
            return handler

        return decorate

    def static(self, uri: str, file_or_directory: str | Path, *, name: str | None = None) -> None:
        self.files.append((uri, file_or_directory))

    def register(self, app: Any, *, url_prefix: str | None = None) -> None:
        """Put the pages under a path of an app."""
        prefix = url_prefix or self.url_prefix or "/"
        for uri, handler, options in self.routes:
            app.page(joined(prefix, uri), **options)(handler)
        for uri, place in self.files:
            app.web.add_static(joined(prefix, uri), place)

    def cache(self, timeout: Any = None, **_: Any) -> Cache:
        return Cache(self.name, timeout)


class Cache:
    """What Faust keeps answers in. Pages are asked each time here: a table is as near as a cache would be."""

    def __init__(self, name: str, timeout: Any) -> None:
        self.timeout = timeout
        _logger.info("blueprint %s: answers are not cached, tables are read each time", name)

    def view(self, **_: Any) -> Callable[[Any], Any]:
        return lambda function: function


class Blueprints:
    """The blueprints of an app, by the paths they stand under."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def add(self, prefix: str, blueprint: Blueprint | str) -> None:
        """Put a blueprint under a path; text names a module and what is in it: `"shop.users:blueprint"`."""
        found = resolve_name(blueprint) if isinstance(blueprint, str) else blueprint
        found = getattr(found, "blueprint", found)
        if not isinstance(found, Blueprint):
            raise TopologyError(
                f"{blueprint!r} is no blueprint",
                hint='write web.Blueprint("users"), or the name of one: "shop.users:blueprint"',
                at=Location.of_caller(),
            )
        found.register(self._app, url_prefix=prefix)


def joined(prefix: str, uri: str) -> str:
    return f"/{prefix.strip('/')}/{uri.lstrip('/')}".replace("//", "/")


def routed(app: Any, given: tuple[Any, Any, Any, Any]) -> Callable[[Any], Any]:
    """A handler for whose table a worker would have been chosen; every worker sees all rows here."""
    keyed, *names = given
    if not any(names):
        raise TopologyError(
            f"{keyed!r} is asked for by nothing",
            hint="say where its key stands: match_info= for a part of the path, query_param=, or exact_key=",
            at=Location.of_caller(),
        )
    if keyed.app is not app:
        raise TopologyError(
            f'{keyed!r} belongs to app "{keyed.app.id}"', hint="route by one of this app", at=Location.of_caller()
        )
    return partial(_same)


def _same(function: Any) -> Any:
    return function
