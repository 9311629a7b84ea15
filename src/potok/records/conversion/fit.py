"""Convert Python objects to typed columns: a row that does not fit its type is an error, and only that row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa

from potok.errors import SchemaError
from potok.records.conversion.convert import MisfitError, Reading, Rules, describe, spelled
from potok.records.schemas.ddl_text import print_type
from potok.records.schemas.schema import Field, Schema

_LIST_KINDS = ({list}, {list, type(None)})


@dataclass(slots=True)
class Fitted:
    """A typed column, null where a row is in `errors`."""

    column: pa.Array
    errors: dict[int, str] = field(default_factory=dict)


def fit(objects: list[Any], schema: Schema, reading: Rules) -> Fitted:
    """Return the objects as a column of `schema`'s type. None is null and never an error at the top level."""
    errors: dict[int, str] = {}
    column = _Fitter(reading, errors).column(objects, schema, "", lambda index: index)
    return Fitted(without_rows(column, errors), errors)


def without_rows(column: pa.Array, rows: Mapping[int, object]) -> pa.Array:
    """Return the column with null in these rows."""
    if not rows:
        return column
    indices = np.arange(len(column))
    gone = np.zeros(len(column), dtype=bool)
    gone[list(rows)] = True
    return column.take(pa.array(indices, mask=gone))


def with_default(column: pa.Array, missing: np.ndarray[Any, Any], field: Field) -> pa.Array:
    """Return the column with the field's default in the `missing` rows."""
    if not missing.any():
        return column
    default = fit([field.default], field.schema, Reading.PYTHON)
    if default.errors:
        raise SchemaError(f'the default of field "{field.name}" is not of its type: {default.errors[0]}')
    indices = np.where(missing, len(column), np.arange(len(column)))
    return pa.concat_arrays([column, default.column]).take(pa.array(indices))


@dataclass(frozen=True, slots=True)
class _Fitter:
    """Builds a column and its nested columns.

    Nested columns are flat, so each gets `row`, which returns the record of the object at an index; it is
    called for bad objects only.
    """

    reading: Rules
    errors: dict[int, str]

    def column(self, objects: list[Any], schema: Schema, path: str, row: Callable[[int], int]) -> pa.Array:
        if schema.kind == "struct":
            return self._struct(objects, schema, path, row)
        if schema.kind == "list":
            return self._list(objects, schema, path, row)
        if schema.kind == "map":
            return self._map(objects, schema, path, row)
        return self._scalar(objects, schema, path, row)

    def _scalar(self, objects: list[Any], schema: Schema, path: str, row: Callable[[int], int]) -> pa.Array:
        if self.reading.plain(schema.arrow).issuperset(map(type, objects)):
            try:
                return pa.array(objects, schema.arrow)
            except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
                pass  # some object is out of range: find it by converting one by one
        convert = self.reading.converter(schema.arrow)
        return pa.array(self._each(objects, convert, path, row), schema.arrow)

    def _each(
        self, objects: list[Any], convert: Callable[[Any], Any], path: str, row: Callable[[int], int]
    ) -> list[Any]:
        out: list[Any] = [None] * len(objects)
        for index, obj in enumerate(objects):
            if obj is not None:
                try:
                    out[index] = convert(obj)
                except MisfitError as misfit:
                    self._error(row(index), path, str(misfit))
                except Exception as error:  # noqa: BLE001 - an object of the user's own may answer anything
                    self._error(row(index), path, f"cannot be read: {type(error).__name__}: {spelled(error)}")
        return out

    def _struct(self, objects: list[Any], schema: Schema, path: str, row: Callable[[int], int]) -> pa.Array:
        if not {dict}.issuperset(map(type, objects)):
            objects = self._each(objects, self.reading.mapping(schema), path, row)
        objects = self.reading.named(objects, schema.names)
        present = [obj is not None for obj in objects]
        children = [
            self._field(objects, field, f"{path}.{field.name}" if path else field.name, row) for field in schema.fields
        ]
        if not children:
            return pa.array([{} if there else None for there in present], schema.arrow)
        mask = None if all(present) else pa.array(present, pa.bool_())
        absent = None if mask is None else pa.compute.invert(mask)
        return pa.StructArray.from_arrays(children, fields=list(schema.arrow), mask=absent)

    def _field(self, objects: list[Any], field: Field, path: str, row: Callable[[int], int]) -> pa.Array:
        name = field.name
        found = [None if obj is None else obj.get(name) for obj in objects]
        column = self.column(found, field.schema, path, row)
        if field.nullable and not field.has_default:
            return column
        missing = np.fromiter((item is None for item in found), bool, len(found))
        if not missing.any():
            return column
        missing &= np.fromiter((obj is not None for obj in objects), bool, len(objects))
        if field.required:
            for index in np.flatnonzero(missing).tolist():
                self._error(row(index), path, "is missing or null", joined=True)
            return column
        if field.nullable:
            missing &= np.fromiter((obj is None or name not in obj for obj in objects), bool, len(objects))
        return with_default(column, missing, field)

    def _list(self, objects: list[Any], schema: Schema, path: str, row: Callable[[int], int]) -> pa.Array:
        assert schema.item is not None
        if set(map(type, objects)) not in _LIST_KINDS:
            objects = self._each(objects, self.reading.sequence(schema), path, row)
        items = list(chain.from_iterable(obj for obj in objects if obj))
        offsets, owner = _offsets(objects, row)
        values = self.column(items, schema.item, f"{path}[]", owner)
        self._no_nulls(items, schema, f"{path}[]", owner)
        return pa.ListArray.from_arrays(offsets, values, type=schema.arrow)

    def _map(self, objects: list[Any], schema: Schema, path: str, row: Callable[[int], int]) -> pa.Array:
        assert schema.key is not None
        assert schema.item is not None
        if not {dict}.issuperset(map(type, objects)):
            objects = self._each(objects, self.reading.mapping(schema), path, row)
        offsets, owner = _offsets(objects, row)
        keys: list[Any] = list(chain.from_iterable(obj for obj in objects if obj))
        items = list(chain.from_iterable(obj.values() for obj in objects if obj))
        fitted_keys = self._keys(keys, schema.key, f"{path}{{}}", owner)
        fitted_items = self.column(items, schema.item, f"{path}{{}}", owner)
        self._no_nulls(items, schema, f"{path}{{}}", owner)
        return pa.MapArray.from_arrays(offsets, fitted_keys, fitted_items, type=schema.arrow)

    def _keys(self, keys: list[Any], schema: Schema, path: str, row: Callable[[int], int]) -> pa.Array:
        fitted = self._each(keys, self.reading.map_key(schema.arrow), path, row)
        for index, key in enumerate(fitted):
            if key is None:
                # The row is an error and becomes null, but Arrow refuses a map with a null key even there.
                self._error(
                    row(index), path, f"expected a key of type {print_type(schema)}, got {describe(keys[index])}"
                )
                fitted[index] = "" if pa.types.is_string(schema.arrow) else 0
        return pa.array(fitted, schema.arrow)

    def _no_nulls(self, items: list[Any], schema: Schema, path: str, row: Callable[[int], int]) -> None:
        if not schema.item_nullable and None in items:
            for index, item in enumerate(items):
                if item is None:
                    self._error(row(index), path, "is null", joined=True)

    def _error(self, row: int, path: str, message: str, *, joined: bool = False) -> None:
        subject = f'field "{path}"' if path else "the value"
        self.errors.setdefault(row, f"{subject}{' ' if joined else ': '}{message}")


def _offsets(objects: list[Any], row: Callable[[int], int]) -> tuple[pa.Array, Callable[[int], int]]:
    """Return the offsets of each object's items among all items, and which record an item belongs to."""
    ends = np.fromiter(accumulate((len(obj) if obj else 0 for obj in objects), initial=0), np.int64, len(objects) + 1)
    # A null offset makes the list at that index null.
    absent = np.fromiter(chain((obj is None for obj in objects), (False,)), bool, len(objects) + 1)
    offsets = pa.array(ends.astype(np.int32), mask=absent if absent.any() else None)
    return offsets, lambda index: row(int(np.searchsorted(ends, index, side="right")) - 1)
