"""Serve programs from Python: their tables, commands and sagas, and files of one's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from potok.log.open import open_broker
from potok.server.access.tokens import Tokens
from potok.server.server import Server
from potok.settings import Settings
from potok.statements.query_tables import QueryTables


@dataclass(frozen=True, slots=True)
class ServedFiles:
    """A directory, or a file, below a path."""

    prefix: str
    path: Path


@contextmanager
def serve(
    *queries: str,
    broker: str | Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8088,
    tokens: str | Path | None = None,
    origins: Collection[str] = (),
    files: Mapping[str, str | Path] | None = None,
) -> Iterator[Server]:
    """Serve the tables, commands and sagas of queries over HTTP, whichever process runs them.

    >>> with potok.start(builder, broker="file:./data") as query, potok.serve("shop", broker="file:./data") as server:
    ...     print(server.url)

    Args:
        queries: The names of the queries; one that has not started yet has nothing to serve.
        broker: The URL of the log.
        host: The address to listen on; without tokens, one of this machine.
        port: The port; 0 for any free one.
        tokens: A `tokens.toml`.
        origins: Sites whose pages may call this server from a browser.
        files: Directories by path; the `index.html` of `{"/": "./page"}` is the page of the server.
    """
    settings = Settings.load(broker=None if broker is None else str(broker))
    log = open_broker(settings.broker, settings)
    served = [ServedFiles(prefix, Path(path)) for prefix, path in (files or {}).items()]
    with (
        QueryTables(log, settings, queries) as database,
        Server(database, host, port, tokens=Tokens.load(tokens), origins=origins, files=served) as server,
    ):
        yield server
