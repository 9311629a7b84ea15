"""Tables with versions: which instants can be read."""

from __future__ import annotations

from typing import Any, NamedTuple

from potok.errors import QueryError
from potok.snapshots.rows.layout import TableLayout


class Version(NamedTuple):
    """The value of a row from an instant on, in milliseconds since 1970; None means no row."""

    since_ms: int
    value: Any


class NoHistory(QueryError):
    """Versions were requested from a table without versions."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" has no versions', hint='retain them for some time: builder.table(..., history="7 days")'
        )


class BeforeHistory(QueryError):
    """An instant whose versions are no longer retained."""

    def __init__(self, table: str, as_of_ms: int, from_ms: int) -> None:
        super().__init__(
            f'the history of table "{table}" goes back to {from_ms}, not to {as_of_ms}',
            hint="read a later instant, or set a longer history=",
        )


def check_retained(layout: TableLayout, watermark_ms: int | None, as_of_ms: int) -> None:
    """Raise `BeforeHistory` if the table no longer retains the versions of an instant, whose watermark is given."""
    retained_ms = layout.held_ms + layout.history_ms
    if watermark_ms is not None and as_of_ms < watermark_ms - retained_ms:
        raise BeforeHistory(layout.table, as_of_ms, watermark_ms - retained_ms)
