"""Serve a log over HTTP from a Python program."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from potok.extras import need_extra
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.settings import Settings

if TYPE_CHECKING:
    from potok.server.server import Server


@dataclass(frozen=True, slots=True)
class ServedFiles:
    """A directory, or a file, below a path."""

    prefix: str
    path: Path


@contextmanager
def serve(
    broker: str | Path | Broker,
    *,
    queries: Sequence[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 8088,
    run_queries: bool = True,
    tokens: str | Path | None = None,
    origins: Collection[str] = (),
    files: Mapping[str, str | Path] | None = None,
    **settings: Any,
) -> Iterator[Server]:
    """Serve a log over HTTP in this process, as `potok serve` does.

    >>> with potok.serve("file:./data", port=0) as server:
    ...     print(server.url)

    Args:
        broker: The log, or its URL.
        queries: Serve only the tables of these queries, which this or another process runs, instead of the SQL catalog.
        host: The address to listen on; without tokens, a loopback address.
        port: The port to listen on; 0 for any free port.
        run_queries: Whether SQL queries run in this process.
        tokens: A file of tokens.
        origins: Sites whose pages may call this server from a browser; none by default.
        files: Directories and files by path; with `{"/": "./page"}`, the page of the server is `./page/index.html`.
        settings: Any setting of `potok.toml`.
    """
    need_extra("serving a log", "server")
    from potok.server.access.tokens import Tokens
    from potok.server.server import Server
    from potok.statements.database import Database
    from potok.statements.queries.query_tables import QueryTables

    url = broker.url if isinstance(broker, Broker) else str(broker)
    chosen = Settings.load(broker=url, **settings)
    log = broker if isinstance(broker, Broker) else open_broker(url, chosen)
    database = Database(log, chosen, runs=run_queries) if queries is None else QueryTables(log, chosen, queries)
    served = [ServedFiles(prefix, Path(path)) for prefix, path in (files or {}).items()]
    with database, Server(database, host, port, tokens=Tokens.load(tokens), origins=origins, files=served) as server:
        yield server
