"""Serve the web pages of a Faust-style program; shared by `worker` and `potok run`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from potok.cli.output import note
from potok.extras import has_extra, need_extra

if TYPE_CHECKING:
    from potok.cli.queries.serving import Address
    from potok.faust.app import App
    from potok.runtime.queries.query import Query
    from potok.server.server import Server
    from potok.settings import Settings

DEFAULT_HOST = "127.0.0.1"

_logger = logging.getLogger("potok.faust")


class AppServices:
    """What an app runs next to its query: pages, statements, tasks and timers. Empty for other programs."""

    def __init__(self, program: object) -> None:
        from potok.faust.app import App

        self.app = program if isinstance(program, App) else None
        self._stack = ExitStack()

    @property
    def broker(self) -> str | None:
        """Return the broker that the program sets."""
        return None if self.app is None else self.app.broker

    @property
    def state(self) -> str | None:
        return None if self.app is None else self.app.state

    @property
    def kafka(self) -> Mapping[str, str]:
        """Return the Kafka options that the program sets."""
        return {} if self.app is None else self.app.kafka

    @property
    def begin(self) -> Literal["earliest", "latest"]:
        """Return where a new query starts."""
        return "earliest" if self.app is None else self.app.begin

    def serve(
        self,
        settings: Settings,
        port: int | None,
        *,
        without: bool,
        address: Address | None = None,
        tokens: Path | None = None,
    ) -> None:
        """Serve pages if there are any, or if a port or address is given."""
        app = self.app
        if app is None:
            return
        app.broker, app.state = settings.broker, settings.state or None
        host = None if address is None else address.host
        port = port if address is None else address.port
        if not without and (port is not None or app.web_routes() or app.web.files):
            server = self._stack.enter_context(hosted(app, host=host, port=port, tokens=tokens))
            if server is not None:
                note(f"pages of {app.id}: {server.url}")

    def start(self, query: Query, *, until_end: bool) -> Query:
        """Start what needs the running query."""
        if self.app is not None:
            from potok.faust.services.running import warn_of_unseen
            from potok.faust.services.services import Services

            warn_of_unseen(self.app)
            self._stack.enter_context(self.app.statements.at_work(until_end=until_end))
            self._stack.enter_context(Services(self.app, self.app.timed))
        return query

    def __enter__(self) -> AppServices:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)


@contextmanager
def hosted(
    app: App,
    *,
    host: str | None = None,
    port: int | None = None,
    tokens: Path | None = None,
    origins: Collection[str] = (),
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
    from potok.server.access.tokens import Tokens
    from potok.server.server import CannotListen, Server

    options = app.options
    bind_host = host or options.get("web_bind") or options.get("web_host") or DEFAULT_HOST
    asked = options.get("web_port") if port is None else port
    database = app.statements.database
    try:
        server = Server(
            database,
            bind_host,
            DEFAULT_PORT if asked is None else int(asked),
            tokens=Tokens.load(tokens),
            origins=origins,
            pages=app.web_routes(),
            files=app.web.files,
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
