"""The data source of the web page."""

from __future__ import annotations

from typing import Any, Protocol

from potok.errors import QueryError


class UnknownTable(QueryError):
    """The query has no table of that name."""

    def __init__(self, query: str, table: str) -> None:
        super().__init__(f'query "{query}" has no table "{table}"', hint="GET /api/topology lists the tables")


class Feed(Protocol):
    """What a page shows, asked from a thread, several times a second. Everything returned is plain data."""

    def topology(self) -> dict[str, Any]:
        """`query`, `nodes`, `tables` and `panels`: what does not change while the query runs."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """The numbers as of now."""
        ...

    def rows(self, table: str, find: str, limit: int) -> dict[str, Any]:
        """At most `limit` rows of a table whose key contains `find`."""
        ...
