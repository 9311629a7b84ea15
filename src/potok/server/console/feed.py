"""The data source of the web page."""

from __future__ import annotations

from typing import Any, Protocol

from potok.errors import QueryError


class UnknownTable(QueryError):
    """The query has no table of that name."""

    def __init__(self, query: str, table: str) -> None:
        super().__init__(f'query "{query}" has no table "{table}"', hint="GET /api/topology lists the tables")


class Feed(Protocol):
    """Data of the page, called from a thread several times a second. Everything returned is plain data."""

    def topology(self) -> dict[str, Any]:
        """Return `query`, `nodes`, `tables` and `panels`, which do not change while the query runs."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return the current figures."""
        ...

    def rows(self, table: str, find: str, limit: int) -> dict[str, Any]:
        """Return at most `limit` rows of a table whose key contains `find`."""
        ...
