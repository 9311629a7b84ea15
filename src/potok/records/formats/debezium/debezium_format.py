"""Debezium's change events as rows of a table, and their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.records.conversion.fit import without_rows
from potok.records.formats.debezium.connect_json import ConnectJson, loads
from potok.records.formats.debezium.encodings import Encodings, written
from potok.records.formats.debezium.registered_avro import as_json
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.formats.json.objects import dumps
from potok.records.rows import column_of, rows_of
from potok.records.schemas.schema import Field, Schema

UNAVAILABLE = "__debezium_unavailable_value"
_UNAVAILABLE_BYTES = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
_TEXT = Schema.scalar(pa.string())
_OF_ROWS = ("c", "u", "r")


@dataclass(slots=True)
class Rows:
    """The row after each change, null for a delete, and what Debezium could not say about it."""

    column: Column
    errors: dict[int, str] = field(default_factory=dict)
    unavailable: dict[int, list[str]] = field(default_factory=dict)
    """By row: the fields that the change did not touch, and that the database did not send."""
    truncates: list[int] = field(default_factory=list)
    """The records that say that all rows are gone."""


@dataclass(frozen=True, slots=True)
class DebeziumFormat:
    """The row after each change; a delete and a tombstone are null. Fields that were not sent are null."""

    name: str = "debezium"
    decimals: str = "precise"
    time: str = "micros"
    names: str = "exact"
    registry: str = ""
    """Where the schemas of values in Avro are: a URL, or `env:NAME` of one."""

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        rows = self.rows(values, schema, columns)
        return Decoded(rows.column, rows.errors)

    def rows(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Rows:
        values, broken = as_json(binary_column(values), self.registry)
        rows = self._rows(values, schema, columns)
        rows.errors |= broken
        return rows

    def _rows(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None) -> Rows:
        if schema is None:
            return _dynamic(values)
        marked = pc.fill_null(pc.match_substring(values, UNAVAILABLE), False)
        marked = pc.or_(marked, pc.fill_null(pc.match_substring(values, _UNAVAILABLE_BYTES), False))
        unavailable: dict[int, list[str]] = {}
        if pc.any(marked).as_py():
            values, unavailable = _without_marks(values, np.flatnonzero(marked.to_numpy(zero_copy_only=False)))
            columns_of = {self._encodings.name(field.name): field.name for field in schema.fields}
            unavailable = {
                row: [columns_of[name] for name in names if name in columns_of] for row, names in unavailable.items()
            }
        row = schema.select(columns)
        fitted = self._json.decode(values, Schema.struct([Field("after", row), Field("op", _TEXT)]))
        rows = Rows(fitted.column.field(0), dict(fitted.errors), unavailable)
        _judge(rows, values, fitted.column.field(1))
        return rows

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        return _encoded(column, schema, self._event)

    def _event(self, row: Any, schema: Schema | None) -> bytes:
        after = row if schema is None else written(row, schema, self._encodings)
        return dumps({"before": None, "after": after, "op": "c"})

    @property
    def _encodings(self) -> Encodings:
        return Encodings(self.decimals, self.time, self.names)

    @property
    def _json(self) -> ConnectJson:
        return ConnectJson(self._encodings)


@dataclass(frozen=True, slots=True)
class EnvelopeFormat(DebeziumFormat):
    """Whole change events: `before`, `after`, `op` and whatever else is declared, with Debezium's types."""

    name: str = "debezium_envelope"

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        values, broken = as_json(binary_column(values), self.registry)
        if schema is None:
            found = _each(values, loads)
            return Decoded(found.column, {**found.errors, **broken})
        fitted = self._json.decode(values, schema.select(columns))
        return Decoded(fitted.column, {**fitted.errors, **broken})

    def _event(self, row: Any, schema: Schema | None) -> bytes:
        return dumps(row if schema is None else written(row, schema, self._encodings))


@dataclass(frozen=True, slots=True)
class DebeziumKeyFormat:
    """A key: an object with one field, or a struct of all its fields. `field` names the one that is written."""

    name: str = "debezium_key"
    field: str = "id"
    decimals: str = "precise"
    time: str = "micros"
    names: str = "exact"
    registry: str = ""

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        values, broken = as_json(binary_column(values), self.registry)
        found = self._decode(values, schema)
        return Decoded(found.column, {**found.errors, **broken})

    def _decode(self, values: pa.Array, schema: Schema | None) -> Decoded:
        if schema is None:
            return _each(values, lambda value: _only(loads(value)))
        if schema.kind == "struct":
            fitted = self._json.decode(values, schema)
            return Decoded(fitted.column, fitted.errors)
        name = _name_of(values)
        if name is None or pa.types.is_string(schema.arrow):
            return self._each_scalar(values, schema)
        fitted = self._json.decode(values, Schema.struct([Field(name, schema)]))
        column = fitted.column.field(0)
        # Another name, or a field that does not fit: say which.
        doubtful = np.flatnonzero(pc.and_(column.is_null(), values.is_valid()).to_numpy(zero_copy_only=False))
        if not len(doubtful):
            return Decoded(column, {})
        return self._each_scalar(values, schema)

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        return _encoded(column, schema, self._key)

    def _key(self, key: Any, schema: Schema | None) -> bytes:
        plain = key if schema is None else written(key, schema, Encodings(self.decimals, self.time, self.names))
        return dumps(plain if isinstance(plain, dict) else {self.field: plain})

    def _each_scalar(self, values: pa.Array, schema: Schema) -> Decoded:
        text = pa.types.is_string(schema.arrow)
        dynamic = _each(values, lambda value: _wrapped(loads(value), text=text))
        assert isinstance(dynamic.column, list)
        wrapped = dynamic.column
        fitted = self._json.decode(pa.array(wrapped, pa.binary()), Schema.struct([Field("key", schema)]))
        column = fitted.column.field(0)
        errors = {**fitted.errors, **dynamic.errors}
        return Decoded(without_rows(column, errors), errors)

    @property
    def _json(self) -> ConnectJson:
        return ConnectJson(Encodings(self.decimals, self.time, self.names))


def _judge(rows: Rows, values: pa.Array, ops: pa.Array) -> None:
    """Sort out the records that are not changes of rows."""
    assert isinstance(rows.column, pa.Array)
    usual = pc.is_in(ops, pa.array([*_OF_ROWS, "d"]))
    rest = pc.and_(pc.invert(usual), values.is_valid()).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(rest).tolist():
        if row in rows.errors:
            continue
        op = ops[row].as_py()
        if op == "t":
            rows.truncates.append(row)
        else:
            rows.errors[row] = "not a change event of Debezium: there is no op" if op is None else f'unknown op "{op}"'
    gone = pc.fill_null(pc.equal(ops, "d"), False)
    kept = pc.and_(pc.is_in(ops, pa.array(_OF_ROWS)), rows.column.is_null())
    for row in np.flatnonzero(pc.fill_null(kept, False).to_numpy(zero_copy_only=False)).tolist():
        rows.errors.setdefault(row, "the change has no row after it")
    if pc.any(gone).as_py():
        rows.column = pc.if_else(gone, pa.scalar(None, rows.column.type), rows.column)
    if rows.errors:
        rows.column = without_rows(rows.column, rows.errors)


def _dynamic(values: pa.Array) -> Rows:
    """Read rows as plain Python objects."""
    rows = Rows([None] * len(values))
    assert isinstance(rows.column, list)
    for row, value in enumerate(values.to_pylist()):
        if value is None:
            continue
        try:
            event = loads(value)
        except ValueError as error:
            rows.errors[row] = f"not valid JSON: {error}"
            continue
        op = event.get("op") if isinstance(event, dict) else None
        after = event.get("after") if isinstance(event, dict) else None
        if op == "t":
            rows.truncates.append(row)
        elif op == "d":
            continue
        elif op not in _OF_ROWS or not isinstance(after, dict):
            rows.errors[row] = "not a change event of Debezium"
        else:
            missing = [name for name, each in after.items() if is_unavailable(each)]
            if missing:
                rows.unavailable[row] = missing
            rows.column[row] = {name: None if name in missing else each for name, each in after.items()}
    return rows


def is_unavailable(value: Any) -> bool:
    """Whether a value stands for one that the database did not send."""
    if isinstance(value, list):
        return value == [UNAVAILABLE]
    if isinstance(value, dict):
        return value.get("value") == _UNAVAILABLE_BYTES
    return value in (UNAVAILABLE, _UNAVAILABLE_BYTES)


def _encoded(column: Column, schema: Schema | None, write: Callable[[Any, Schema | None], bytes]) -> Encoded:
    """Encode values one by one, converted to the declared type if there is one."""
    errors: dict[int, str] = {}
    if schema is not None and isinstance(column, list):
        fitted = column_of(column, schema)
        column, errors = fitted.column, fitted.errors
    rows = column if isinstance(column, list) else rows_of(column)
    return Encoded(pa.array([None if row is None else write(row, schema) for row in rows], pa.binary()), errors)


def _without_marks(values: pa.Array, marked: np.ndarray[Any, Any]) -> tuple[pa.Array, dict[int, list[str]]]:
    """Replace the marks of unavailable values by null, and note where they were."""
    texts = values.to_pylist()
    unavailable = {}
    for row in marked.tolist():
        try:
            event = orjson.loads(texts[row])
        except orjson.JSONDecodeError:
            continue
        inside = event.get("payload", event) if isinstance(event, dict) else None
        after = inside.get("after") if isinstance(inside, dict) else None
        if not isinstance(after, dict):
            continue
        missing = [name for name, each in after.items() if is_unavailable(each)]
        if missing:
            unavailable[row] = missing
            after.update(dict.fromkeys(missing))
            texts[row] = orjson.dumps(event)
    return pa.array(texts, pa.binary()), unavailable


def _each(values: pa.Array, read: Any) -> Decoded:
    found: list[Any] = []
    errors = {}
    for row, value in enumerate(values.to_pylist()):
        try:
            found.append(None if value is None else read(value))
        except ValueError as error:
            found.append(None)
            errors[row] = f"cannot be read: {error}"
    return Decoded(found, errors)


def _only(key: Any) -> Any:
    """Return the key in an object with one field."""
    return next(iter(key.values())) if isinstance(key, dict) and len(key) == 1 else key


def _wrapped(key: Any, *, text: bool) -> bytes | None:
    """Return a key of one field as the field `key` of a JSON object."""
    found = _only(key)
    if isinstance(found, dict):
        raise ValueError(f"the key has the fields {', '.join(found)}: declare it with all of them")
    if found is None:
        return None
    try:
        if text and not isinstance(found, str):
            found = orjson.dumps(found).decode()
        return orjson.dumps({"key": found})
    except TypeError as error:
        # Nested deeper than orjson writes, or a number beyond 64 bits.
        raise ValueError(str(error)) from error


def _name_of(values: pa.Array) -> str | None:
    """Return the name of the field in the first key."""
    for value in values.slice(0, 1).to_pylist():
        try:
            found = None if value is None else loads(value)
        except ValueError:
            return None
        if isinstance(found, dict) and len(found) == 1:
            return str(next(iter(found)))
    return None
