"""Tables that keep versions: which instants a reader may ask for."""

from __future__ import annotations

from typing import Any, NamedTuple

from potok.errors import QueryError
from potok.snapshots.layout import TableLayout


class Version(NamedTuple):
    """The value of a row from an instant on, in milliseconds since 1970; None is no row."""

    since_ms: int
    value: Any


class NoHistory(QueryError):
    """Versions asked of a table that keeps none."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" keeps no versions', hint='keep them for a while: builder.table(..., history="7 days")'
        )


class BeforeHistory(QueryError):
    """An instant whose versions are no longer kept."""

    def __init__(self, table: str, as_of_ms: int, from_ms: int) -> None:
        super().__init__(
            f'the history of table "{table}" goes back to {from_ms}, not to {as_of_ms}',
            hint="ask for a later instant, or keep a longer history=",
        )


def check_kept(layout: TableLayout, clock_ms: int | None, as_of_ms: int) -> None:
    """Raise `BeforeHistory` if the table no longer keeps the versions of an instant; `clock_ms` is its watermark."""
    kept_ms = layout.held_ms + layout.history_ms
    if clock_ms is not None and as_of_ms < clock_ms - kept_ms:
        raise BeforeHistory(layout.table, as_of_ms, clock_ms - kept_ms)
