"""What a reader gets of a table that keeps versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from potok.checksum import crc32
from potok.errors import QueryError
from potok.kernels.versions import version_prefix, versions_of
from potok.kernels.windows import time_bytes, time_of
from potok.state.codec import load_state
from potok.state.misfit import reading_cells
from potok.state.store import LONGEST_PREFIX, after_prefix, stored_stop

if TYPE_CHECKING:
    from potok.views.cut import Cut
    from potok.views.layout import TableLayout
    from potok.views.tables import Tables


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


class Versions:
    """The versions of the rows of one table."""

    def __init__(self, tables: Tables, layout: TableLayout) -> None:
        if not layout.history_ms:
            raise NoHistory(layout.table)
        self._tables, self._layout = tables, layout

    def get(self, key: bytes, as_of_ms: int, default: Any) -> Any:
        """The value that a row had at an instant."""
        clock_ms = self._tables.clock_ms(self._layout.table)
        kept_ms = self._layout.held_ms + self._layout.history_ms
        if clock_ms is not None and as_of_ms < clock_ms - kept_ms:
            raise BeforeHistory(self._layout.table, as_of_ms, clock_ms - kept_ms)
        found = self._read(key, as_of_ms)
        return found[-1].value if found and found[-1].value is not None else default

    def all(self, key: bytes) -> list[Version]:
        return self._read(key, None)

    def _read(self, key: bytes, until_ms: int | None) -> list[Version]:
        prefix = version_prefix(key)
        last = None if until_ms is None else prefix + time_bytes(np.array([until_ms + 1], np.int64))[0]

        def work(cut: Cut) -> list[Version]:
            start, stop = prefix[:LONGEST_PREFIX], stored_stop(last or after_prefix(prefix))
            cells = cut.scan(versions_of(self._layout.table), start, stop, shard=crc32(key) % cut.shards)
            mine = [(cell, data) for cell, data in cells if cell[:-8] == prefix and (last is None or cell < last)]
            with reading_cells(self._layout.table):
                return [Version(time_of(cell[-8:]), load_state(data)[1]) for cell, data in sorted(mine)]

        return self._tables.read(work)
