"""Serve the tables of programs over HTTP: `potok run --serve` and `potok serve --query`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from potok.extras import need_extra
from potok.server.address import Address

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
    tokens: Path | None = None,
    limits: Limits | None = None,
    origins: Collection[str] = (),
    monitor: Monitor | None = None,
) -> Iterator[Server]:
    """Serve the tables of queries that this or another process runs; a query that has not started has no tables yet."""
    need_extra("serving tables", "server")
    from potok.server.access.tokens import Tokens
    from potok.server.server import Server
    from potok.statements.queries.query_tables import QueryTables

    with (
        QueryTables(log, settings, queries) as database,
        Server(
            database, *address, tokens=Tokens.load(tokens), limits=limits, origins=origins, monitor=monitor
        ) as server,
    ):
        yield server
