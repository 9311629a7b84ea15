"""A database served on a port."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from potok.monitoring.monitor import Monitor
from potok.server.access.audit import Audit
from potok.server.access.guard import is_loopback
from potok.server.access.limits import Limits
from potok.server.access.tokens import Tokens
from potok.server.address import DEFAULT_HOST
from potok.server.app import create_app
from potok.server.app_server import AppServer
from potok.server.errors import OpenToAll
from potok.server.figures.figures import Figures
from potok.server.pages import Files, Page
from potok.server.tls import Tls
from potok.statements.database import Database
from potok.statements.queries.query_tables import Controlled, Differences, QueryTables

DEFAULT_PORT = 8088
SWITCH_S = 0.001


class Server(AppServer):
    """A database over HTTP, from `start()` to `stop()`; the database stays open.

    >>> with Server(database, port=0) as server:
    ...     print(server.url)

    Args:
        host: The address to listen on; without tokens, a loopback address.
        port: The port to listen on; 0 for any free port.
        origins: Sites whose pages may call this server from a browser; none by default.
        pages: Pages of a program, which it serves itself.
        files: Files of a program.
        monitor: What the process measures; otherwise, the queries of the database are monitored.
        console: Serve the web console.
        tls: The certificate; without one, the server speaks plain HTTP.
        hosts: The names by which clients call this server; without any, all if there are tokens.
        audit: Where changes are logged.
    """

    def __init__(
        self,
        database: Database,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        *,
        tokens: Tokens | None = None,
        limits: Limits | None = None,
        origins: Collection[str] = (),
        pages: Sequence[Page] = (),
        files: Sequence[Files] = (),
        monitor: Monitor | None = None,
        console: bool = True,
        tls: Tls | None = None,
        hosts: Collection[str] = (),
        audit: Audit | None = None,
    ) -> None:
        if not tokens and not is_loopback(host):
            raise OpenToAll(host)
        super().__init__(host, port)
        self.app = create_app(
            database,
            tokens=tokens,
            limits=limits,
            origins=origins,
            pages=pages,
            files=files,
            monitor=monitor,
            console=console,
            hosts=hosts,
            audit=audit,
        )
        self.app.state.site.address = f"{host}:{self.port}"
        most = self.app.state.site.limits.connections
        self._serve(self.app, name="potok-serve", connections=most, tls=tls)

    @property
    def figures(self) -> Figures:
        """What the console shows of queries."""
        found = self.app.state.site.figures
        assert isinstance(found, Figures)
        return found

    def control(self, query: str, running: Controlled) -> None:
        """Let clients pause and resume a query of a program that this process runs."""
        database = self.app.state.site.database
        if isinstance(database, QueryTables):
            database.control(query, running)

    def compare(self, query: str, differences: Differences) -> None:
        """Let clients compare a query with its program on disk."""
        database = self.app.state.site.database
        if isinstance(database, QueryTables):
            database.compare(query, differences)

    def start(self) -> None:
        """Start serving in a thread. The port accepts connections from the construction of this object."""
        # Request threads share the interpreter with the batches; the default switch interval of 5 ms is too long.
        sys.setswitchinterval(min(SWITCH_S, sys.getswitchinterval()))
        super().start()

    def stop(self) -> None:
        """End all responses, including endless ones, and release the port."""
        self.app.state.site.end_streams()
        super().stop()
