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
from potok.server.protection import Protection
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
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    hosts: Collection[str] = (),
    audit_log: str | Path | None = None,
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
        tls_cert: A certificate with its chain, as a PEM file; without one, the server speaks plain HTTP.
        tls_key: The private key of the certificate, as a PEM file.
        hosts: The names by which clients call this server; without any, all if there are tokens.
        audit_log: A file to which each change by a client is appended as a line of JSON.
        settings: Any setting of `potok.toml`.
    """
    need_extra("serving a log", "server")
    from potok.server.server import Server
    from potok.statements.database import Database
    from potok.statements.queries.query_tables import QueryTables

    url = broker.url if isinstance(broker, Broker) else str(broker)
    chosen = Settings.load(broker=url, **settings)
    log = broker if isinstance(broker, Broker) else open_broker(url, chosen)
    database = Database(log, chosen, runs=run_queries) if queries is None else QueryTables(log, chosen, queries)
    served = [ServedFiles(prefix, Path(path)) for prefix, path in (files or {}).items()]
    protection = Protection(tokens, tls_cert, tls_key, tuple(origins), tuple(hosts), audit_log).load()
    with database, Server(database, host, port, files=served, **protection) as server:
        yield server
