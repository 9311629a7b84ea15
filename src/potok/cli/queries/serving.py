"""Serve the tables of programs over HTTP: `potok run --serve` and `potok serve --query`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from potok.extras import need_extra
from potok.server.address import Address
from potok.server.protection import Protection

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.monitoring.monitor import Monitor
    from potok.server.access.limits import Limits
    from potok.server.server import Server
    from potok.settings import Settings


@contextmanager
def served_tables(
    log: Log,
    settings: Settings,
    queries: Sequence[str],
    address: Address,
    *,
    protection: Protection | None = None,
    limits: Limits | None = None,
    monitor: Monitor | None = None,
) -> Iterator[Server]:
    """Serve the tables of queries that this or another process runs; a query that has not started has no tables yet."""
    need_extra("serving tables", "server")
    from potok.server.server import Server
    from potok.statements.queries.query_tables import QueryTables

    with (
        QueryTables(log, settings, queries) as database,
        Server(database, *address, limits=limits, monitor=monitor, **(protection or Protection()).load()) as server,
    ):
        yield server
