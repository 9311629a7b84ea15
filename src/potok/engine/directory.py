"""Where a query keeps what is its own on this machine."""

from __future__ import annotations

from pathlib import Path

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.views.cells import cells_of


def query_directory(broker: Broker, query: str) -> Path:
    root = getattr(broker, "directory", None)
    if root is None:
        raise QueryError(f'the state of query "{query}" needs a directory', hint='run with broker="file:./data"')
    return Path(root) / "queries" / cells_of(broker, query)
