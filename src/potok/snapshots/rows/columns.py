"""Read a table as Arrow columns, many rows at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from potok.operators.cells.cell_codec import FixedCells
from potok.operators.windows.expiry import windows_of
from potok.operators.windows.windows import open_table, time_key
from potok.records.formats.registry import format_named
from potok.records.garbage_collection import collector_paused
from potok.records.json_key import dump_key
from potok.records.keys import key_array
from potok.records.rows import column_of
from potok.records.schemas.declared_schema import declared_schema
from potok.snapshots.rows.key_ranges import ALL, Span, empty_key
from potok.snapshots.rows.layout import TableLayout
from potok.snapshots.rows.row_reader import EVER, RowReader, Starts
from potok.snapshots.rows.segments import whole_cells
from potok.snapshots.snapshot import Snapshot
from potok.state.cell import CellDoesNotFit, reading_cells

KEY, WINDOW_START, WINDOW_END, VALUE = "key", "window_start", "window_end", "value"

INSTANT = pa.timestamp("us", "UTC")


Cells = tuple[list[bytes], list[bytes]]
"""The keys of cells, and their values."""


@dataclass(frozen=True, slots=True)
class Part:
    """Which rows to read, so that not all have to be scanned: those of some keys, or those in a range of stored keys;
    on a table with windows, those whose window starts between two instants. A reader may return others too.
    """

    keys: tuple[bytes, ...] | None = None
    span: Span = ALL
    starts: Starts = EVER


EVERYTHING = Part()


class ColumnReader:
    """Reads one table as record batches: the key, the window if there are windows, and the value.

    The fields of a struct are columns of their own; one with the name of another column gets the prefix `value_`.
    Keys and values without a declared type are text: JSON, except for keys that are text.
    """

    def __init__(self, layout: TableLayout) -> None:
        self.layout = layout
        self._codec, self._windowed = layout.codec(), bool(layout.window)
        self._live, self._open, self._windows = layout.live_windows(), layout.open_reader(), layout.window_keys
        value_type = layout.value_type
        self._struct = value_type if value_type is not None and pa.types.is_struct(value_type) else None
        self._value_type = value_type
        fields = [pa.field(KEY, layout.key_type or pa.string())]
        if self._windowed:
            fields += [pa.field(WINDOW_START, INSTANT), pa.field(WINDOW_END, INSTANT)]
        taken = {field.name for field in fields}
        if self._struct is None:
            fields.append(pa.field(VALUE, value_type or pa.string()))
        else:
            fields += [pa.field(_free(field.name, taken), field.type) for field in self._struct]
        self.schema = pa.schema(fields)

    def table(self, snapshot: Snapshot) -> pa.Table:
        """Return all rows, in no particular order."""
        with collector_paused():
            batches = (batch for shard in range(snapshot.shards) for batch in self.batches(snapshot, shard))
            return pa.Table.from_batches(batches, self.schema)

    def batches(self, snapshot: Snapshot, shard: int, part: Part = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one shard in a part of the table, and possibly others, in no particular order."""
        if not isinstance(self._codec, FixedCells) or self._open is not None or part.keys is not None:
            for keys, data in self.cells(snapshot, shard, part):
                yield from self.decoded(keys, data)
            return
        table, span = self._span(snapshot, shard, part)
        yield from self.decoded(*self._unordered(snapshot, shard, span))
        for keys, cells in snapshot.fixed_chunks(table, self._codec.dtype, *span, shard=shard):
            if keys:
                yield self._batch(keys, self._codec.result(cells, np.ones(len(cells), np.bool_)))

    def cells(self, snapshot: Snapshot, shard: int, part: Part = EVERYTHING) -> Iterator[Cells]:
        """Yield what `batches` decodes: the keys of cells and their values, for `decoded`."""
        if part.keys is not None:
            mine = [key for key in part.keys if self.layout.shard_of(key, snapshot.shards) == shard]
            yield split(RowReader(self.layout).of_keys(snapshot, mine))
            return
        table, span = self._span(snapshot, shard, part)
        chunks = snapshot.chunks(table, *span, shard=shard)
        for keys, data in chain([self._unordered(snapshot, shard, span)], chunks):
            if self.layout.segments is None:
                yield keys, data
            else:
                yield split(list(whole_cells(self.layout, snapshot, zip(keys, data, strict=True))))
        if self._open is not None:
            for keys, data in snapshot.chunks(open_table(self.layout.cell_table), shard=shard):
                pairs = zip(keys, data, strict=True)
                yield split([cell for key, value in pairs for cell in self._open.cells(key, value)])

    def _span(self, snapshot: Snapshot, shard: int, part: Part) -> tuple[str, Span]:
        """Return the table that holds the rows, and the range of its stored keys to scan."""
        if self._live is None:
            return self.layout.cell_table, ALL if self._windowed else part.span
        first, (low, high) = self._live.first(snapshot, shard), part.starts
        start = first if low == -math.inf else max(first, time_key(int(low)))
        return windows_of(self.layout.cell_table), (start, None if high == math.inf else time_key(int(high) + 1))

    def _unordered(self, snapshot: Snapshot, shard: int, span: Span) -> Cells:
        """Return the row of the empty key, which a scan of a range misses."""
        if self._windowed or self.layout.shard_of(b"", snapshot.shards) != shard:
            return [], []
        return split(list(empty_key(snapshot, self.layout.cell_table, span)))

    def decoded(self, keys: list[bytes], data: list[bytes]) -> Iterator[pa.RecordBatch]:
        """Decode cells."""
        if not keys:
            return
        with reading_cells(self.layout.cell_table):
            _, values = self._codec.decode(data)
        if isinstance(values, list) and self.layout.hides_nulls and None in values:
            there = [row for row, value in enumerate(values) if value is not None]
            keys, values = [keys[row] for row in there], [values[row] for row in there]
        if keys:
            yield self._batch(keys, values)

    def hidden(self, data: list[bytes]) -> list[bool]:
        """Return which cells only record that their row was deleted."""
        if not self.layout.hides_nulls:
            return [False] * len(data)
        with reading_cells(self.layout.cell_table):
            _, values = self._codec.decode(data)
        return [value is None for value in values]

    def as_of(self, snapshot: Snapshot, instant_ms: int) -> pa.RecordBatch:
        """Return the rows that a table with versions had at an instant."""
        found = RowReader(self.layout).as_of(snapshot, instant_ms)
        values = found.values if isinstance(found.values, list) else found.values.to_pylist()
        keys: list[Any] = found.keys
        if self.layout.key_type is None:
            keys = [key if type(key) is str else dump_key(key).decode() for key in keys]
        columns = [pa.array(keys, self.schema.field(KEY).type), *self._values(values)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _batch(self, cell_keys: list[bytes], values: pa.Array | list[Any]) -> pa.RecordBatch:
        with reading_cells(self.layout.cell_table):
            columns = [self._keys(cell_keys), *self._bounds(cell_keys), *self._values(values)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _keys(self, cell_keys: list[bytes]) -> pa.Array:
        inner = [self._windows.inner(key) for key in cell_keys] if self._windowed else cell_keys
        return key_array(inner, self.layout.key_type)

    def _bounds(self, cell_keys: list[bytes]) -> list[pa.Array]:
        if not self._windowed:
            return []
        return [
            pa.array(part).cast(pa.timestamp("ms", "UTC")).cast(INSTANT) for part in self._windows.bounds_of(cell_keys)
        ]

    def _values(self, values: pa.Array | list[Any]) -> list[pa.Array]:
        column = self._typed(values) if isinstance(values, list) else values
        if self._value_type is not None and column.type != self._value_type:
            column = column.cast(self._value_type)
        return [column] if self._struct is None else column.flatten()

    def _typed(self, values: list[Any]) -> pa.Array:
        if self._value_type is None:
            return format_named("json").encode(values, None).values.cast(pa.string())
        try:
            return pa.array(values, self._value_type)
        except (pa.ArrowException, TypeError, ValueError):
            schema = declared_schema(self._value_type)
            assert schema is not None
            fitted = column_of(values, schema)
        if fitted.errors:
            reason = next(iter(fitted.errors.values()))
            raise CellDoesNotFit(self.layout.cell_table, ValueError(reason))
        return fitted.column


def split(cells: Sequence[tuple[bytes, bytes]]) -> Cells:
    """Return the keys and the values of pairs of both."""
    return [key for key, _ in cells], [data for _, data in cells]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"{VALUE}_{name}"
    taken.add(name)
    return name
