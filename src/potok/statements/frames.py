"""Rows as Arrow columns by slot, which pull and push queries compute on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.compat.java.dates.calendar import civil
from potok.records.conversion.convert import Reading
from potok.records.conversion.fit import fit
from potok.records.schemas.declared_schema import declared_schema
from potok.snapshots.rows.row_reader import FoundRows
from potok.sql.analysis.scope import ROWTIME, WINDOW_BOUNDS, Field, slot_of
from potok.sql.budget import reserve, reserve_objects, size_of
from potok.sql.catalog import Source
from potok.sql.expressions.compute import compute
from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import Context
from potok.sql.types import BIGINT
from potok.statements.results import Row


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns by slot, all of one length."""

    columns: Mapping[str, pa.Array]
    rows: int

    @property
    def size(self) -> int:
        """Estimate the size in bytes."""
        return sum(size_of(column) for column in self.columns.values())

    def take(self, indexes: np.ndarray[Any, Any] | pa.Array) -> Frame:
        chosen = pa.array(indexes)
        return Frame({slot: column.take(chosen) for slot, column in self.columns.items()}, len(chosen))

    def where(self, condition: Typed, context: Context) -> Frame:
        """Return the rows for which a condition is true, not NULL."""
        mask = compute(condition, self.columns, self.rows, context)
        if mask.true_count == self.rows:
            return self
        return self.take(pc.indices_nonzero(mask))

    def head(self, count: int) -> Frame:
        if self.rows <= count:
            return self
        return Frame({slot: column.slice(0, count) for slot, column in self.columns.items()}, count)

    def with_columns(self, columns: Mapping[str, pa.Array]) -> Frame:
        return Frame({**self.columns, **columns}, self.rows)

    def computed(self, expressions: Iterable[Typed], context: Context) -> list[pa.Array]:
        return [compute(expression, self.columns, self.rows, context) for expression in expressions]


def retained(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Yield the frames, reserving memory for all of them, because the caller keeps them."""
    for frame in frames:
        reserve(frame.size)
        yield frame


def stacked(frames: Sequence[Frame], fields: Sequence[Field]) -> Frame:
    """Concatenate frames; without any, return an empty frame with these fields."""
    if len(frames) == 1:
        return frames[0]
    if not frames:
        return Frame({field.slot: pa.nulls(0, field.type) for field in fields}, 0)
    slots = frames[0].columns
    columns = {slot: pa.concat_arrays([frame.columns[slot] for frame in frames]) for slot in slots}
    return Frame(columns, sum(frame.rows for frame in frames))


def typed_column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Convert Python values to a column; a value that does not match the type becomes NULL."""
    schema = declared_schema(type_)
    assert schema is not None
    return fit(values, schema, Reading.PYTHON).column


def table_frame(found: FoundRows, source: Source, alias: str, wanted: frozenset[str]) -> Frame:
    """Convert rows of a table to a frame with the `wanted` slots."""
    columns: dict[str, pa.Array] = {}
    keys, bounds, values = found.keys, found.bounds, found.values
    if source.stored_table is not None:
        stored = values.to_pylist() if isinstance(values, pa.Array) else values
        keys, values = (
            [source.stored_table.key(key) for key in keys],
            [source.stored_table.value(value) for value in stored],
        )
    if source.window is not None and not bounds:
        # The key of a windowed topic contains the window bounds.
        bounds = [(key["start"], key["end"]) for key in keys]
        keys = [key["key"] for key in keys]
    several = len(source.keys) > 1
    for index, column in enumerate(source.keys):
        if (slot := slot_of(alias, column.name)) in wanted:
            # The stored key may have other field names; the order is the same.
            parts = [None if key is None else list(key.values())[index] for key in keys] if several else keys
            columns[slot] = typed_column(parts, column.type)
    for index, name in enumerate(WINDOW_BOUNDS if source.window is not None else ()):
        if (slot := slot_of(alias, name)) in wanted:
            columns[slot] = pa.array([both[index] for both in bounds], BIGINT)
    for column in (*source.values, *source.headers):
        if (slot := slot_of(alias, column.name)) in wanted:
            columns[slot] = _value_column(values, column.name, column.type)
    if (slot := slot_of(alias, ROWTIME)) in wanted:
        columns[slot] = pa.array(found.times, BIGINT)
    return Frame(columns, len(found))


def _value_column(values: pa.Array | list[Any], name: str, type_: pa.DataType) -> pa.Array:
    if isinstance(values, list):
        return typed_column([None if value is None else value.get(name) for value in values], type_)
    column = pc.struct_field(values, name)
    return column if column.type == type_ else column.cast(type_)


def python_rows(columns: Sequence[pa.Array], rows: int) -> list[Row]:
    """Convert columns to rows of Python values; maps and structs become dicts."""
    if not columns:
        return [()] * rows
    reserve_objects(columns)
    return list(zip(*map(python_values, columns), strict=True))


_DAY_US = 86_400_000_000


def python_values(column: pa.Array) -> list[Any]:
    """Convert a column to Python values; maps and structs become dicts.

    Python's calendar covers the years 1 to 9999, but SQL computes with dates before and after. These become strings in
    Java's format: `+12345-06-30`, `-0044-03-15T12:00:00.000`.
    """
    try:
        found: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    except (ValueError, OverflowError):
        return [_value(scalar) for scalar in column]
    return found


def _value(scalar: pa.Scalar) -> Any:
    type_ = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_struct(type_):
        return {name: _value(part) for name, part in scalar.items()}
    if pa.types.is_map(type_):
        # A map scalar converts its entries eagerly, which may fail; its array converts them one by one.
        entries = scalar.values
        keys, items = entries.field(0), entries.field(1)
        return {_value(key): _value(item) for key, item in zip(keys, items, strict=True)}
    if pa.types.is_list(type_):
        return [_value(item) for item in scalar.values]
    if pa.types.is_date(type_):
        return _date(scalar)
    return _instant(scalar) if pa.types.is_timestamp(type_) else scalar.as_py()


def _date(scalar: pa.Scalar) -> dt.date | str:
    try:
        found: dt.date = scalar.as_py()
    except (ValueError, OverflowError):
        return _render_date(scalar.value)
    return found


def _instant(scalar: pa.Scalar) -> dt.datetime | str:
    try:
        found: dt.datetime = scalar.as_py()
    except (ValueError, OverflowError):
        days, micros = divmod(scalar.cast(pa.timestamp("us", scalar.type.tz)).value, _DAY_US)
        seconds, rest = divmod(micros, 1_000_000)
        time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest // 1_000:03d}"
        return f"{_render_date(days)}T{time}"
    return found


def _render_date(days: int) -> str:
    year, month, day = civil(days)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"
