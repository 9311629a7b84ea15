"""Serve the web pages and tables of an app."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from potok.extras import has_extra, need_extra
from potok.server.protection import Protection

if TYPE_CHECKING:
    from potok.faust.app import App
    from potok.monitoring.monitor import Monitor
    from potok.server.server import Server

DEFAULT_HOST = "127.0.0.1"

_logger = logging.getLogger("potok.faust")


@contextmanager
def hosted(
    app: App,
    *,
    host: str | None = None,
    port: int | None = None,
    protection: Protection | None = None,
    monitor: Monitor | None = None,
) -> Iterator[Server | None]:
    """Serve the pages and tables of an app; the server accepts connections before Spark has started.

    Yields None if the app has no pages, no port was requested, and the default port is in use.
    """
    from potok.faust.pages.pages import DEFAULT_PORT

    wanted = port is not None or app.options.get("web_port") is not None or _has_pages(app)
    if not wanted and not has_extra("server"):
        yield None
        return
    need_extra("serving pages and tables", "server")
    from potok.server.app_server import CannotListen
    from potok.server.server import Server

    options = app.options
    bind_host = host or options.get("web_bind") or options.get("web_host") or DEFAULT_HOST
    asked = options.get("web_port") if port is None else port
    database = app.statements.database
    try:
        server = Server(
            database,
            bind_host,
            DEFAULT_PORT if asked is None else int(asked),
            pages=app.web_routes(),
            files=app.web.files,
            monitor=monitor,
            **(protection or Protection()).load(),
        )
    except CannotListen as error:
        if asked is not None or _has_pages(app):
            error.hint = "choose another one with --web-port, or 0 for any free port"
            raise
        _logger.warning("tables are not served: %s", error.message)
        yield None
        return
    app.web.served_at = server.url
    try:
        with app.own_loop, server:
            yield server
    finally:
        app.statements.close()


def _has_pages(app: App) -> bool:
    return bool(app.web_routes() or app.web.files)
