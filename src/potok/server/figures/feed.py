"""The data source of the view of one query."""

from __future__ import annotations

from typing import Any, Protocol

from potok.errors import QueryError


class UnknownTable(QueryError):
    """The query has no table of that name."""

    def __init__(self, query: str, table: str) -> None:
        hint = f"GET /queries/{query}/topology lists the tables"
        super().__init__(f'query "{query}" has no table "{table}"', hint=hint)


class Feed(Protocol):
    """Figures of one query, read from a thread several times a second. Everything returned is plain data."""

    def topology(self) -> dict[str, Any]:
        """Return `query`, `nodes`, `tables` and `panels`, which do not change while the query runs."""
        ...

    def figures(self) -> dict[str, Any]:
        """Return the current figures; cheap enough to be read every second for each query of a log."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return the current figures with the latest dead letters and the panels."""
        ...
