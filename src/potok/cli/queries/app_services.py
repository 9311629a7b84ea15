"""What `potok run` runs next to the query of a Faust-style program."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal

from potok.cli.output import note

if TYPE_CHECKING:
    from potok.monitoring.monitor import Monitor
    from potok.runtime.queries.query import Query
    from potok.server.address import Address
    from potok.server.protection import Protection
    from potok.settings import Settings


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
    def start_at(self) -> Literal["earliest", "latest"]:
        """Return where a new query starts."""
        return "earliest" if self.app is None else self.app.start_at

    def serve(
        self,
        settings: Settings,
        port: int | None,
        *,
        without: bool,
        address: Address | None = None,
        protection: Protection | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        """Serve pages if there are any, or if a port or address is given."""
        app = self.app
        if app is None:
            return
        app.broker, app.state = settings.broker, settings.state or None
        host = None if address is None else address.host
        port = port if address is None else address.port
        if not without and (port is not None or app.web_routes() or app.web.files):
            from potok.faust.pages.hosted import hosted

            server = self._stack.enter_context(
                hosted(app, host=host, port=port, protection=protection, monitor=monitor)
            )
            if server is not None:
                note(f"pages of {app.id}: {server.url}")

    def start(self, query: Query, *, until_end: bool) -> Query:
        """Start what needs the running query."""
        if self.app is not None:
            from potok.faust.services.running import warn_of_lost_changes
            from potok.faust.services.services import Services

            warn_of_lost_changes(self.app)
            self._stack.enter_context(self.app.statements.at_work(until_end=until_end))
            self._stack.enter_context(Services(self.app, self.app.timed))
        return query

    def __enter__(self) -> AppServices:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)
