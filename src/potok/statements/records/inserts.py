"""INSERT INTO ... VALUES, and bulk inserts. Rows are durable when the call returns."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from potok.clock import now_ms
from potok.events.rows import FORMAT, encode_rows
from potok.events.write import Written
from potok.log.broker import HEADERS, Broker, position_of
from potok.records.formats.format import Encoded
from potok.records.formats.registry import format_named
from potok.records.position import Position
from potok.records.schemas.declared_schema import declared_schema
from potok.sql.analysis.scope import ROWTIME
from potok.sql.catalog import Source, SourceColumn
from potok.sql.errors import Refused, SourceLocation, UnknownName, closest
from potok.sql.expressions.check import check
from potok.sql.expressions.compute import compute
from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import Context
from potok.sql.planner.sources import key_serde
from potok.sql.properties import INSERTS, NO_PROPERTIES, Properties
from potok.sql.syntax import ast
from potok.sql.types import BIGINT, quoted
from potok.statements.database import Database
from potok.statements.results import Done

_SOURCE = "/potok/sql"
"""The source of events that are inserted without one."""

Columns = Mapping[str, pa.Array]
Errors = dict[int, str]


@dataclass(frozen=True, slots=True)
class ValuesScope:
    """The scope of VALUES, which has no columns."""

    custom_types: Mapping[str, pa.DataType]

    def column(self, name: ast.Name) -> Typed:
        hint = f"write text in single quotes: '{name.name}'"
        raise Refused(f"VALUES cannot refer to a column: {quoted(name.name)}", hint=hint, location=name.at)

    def call(self, call: ast.Call) -> Typed | None:
        return None


def insert_values(database: Database, statement: ast.InsertValues, properties: Properties = NO_PROPERTIES) -> Done:
    """Append one record. Columns that are not listed are NULL. A table row with only its key is a delete."""
    if not properties.flag(INSERTS):
        hint = f"SET '{INSERTS}' = 'true'"
        raise Refused("INSERT INTO ... VALUES is disabled", hint=hint, location=statement.at)
    source = writable(database, statement.name, statement.at)
    named = _named(source, statement)
    scope, context = ValuesScope(database.catalog.types), Context(now_ms=now_ms())
    columns: dict[str, pa.Array] = {}
    for column, value in zip(named, statement.values, strict=True):
        computed = compute(check(value, scope, to=column.type), {}, 1, context)
        if context.failures:
            reason = next(iter(context.failures.values()))
            raise Refused(
                f"{quoted(column.name)} cannot be computed: {reason}",
                hint="check the expression and its arguments",
                location=value.at,
            )
        columns[column.name] = computed
    errors, position = _append(database.broker, source, columns, 1)
    for reason in errors.values():
        raise Refused(reason, hint=f"DESCRIBE {quoted(source.name)} shows its columns", location=statement.at)
    return Done("Inserted 1 row", position=str(position))


def insert_rows(database: Database, source: Source, rows: Sequence[Mapping[str, Any]]) -> Errors:
    """Append many records at once, given by column as JSON values. Column names are case-insensitive.

    Returns:
        The reason for each rejected row, by row number. All other rows are durable.
    """
    writable(database, source.name, None)
    columns = [*_insertable(source), SourceColumn(ROWTIME, BIGINT)]
    known = {column.name.upper() for column in columns}
    errors: Errors = {}
    texts: list[bytes] = []
    for number, row in enumerate(rows):
        odd = next((name for name in row if name.strip("`").upper() not in known), None)
        if odd is not None:
            hint = closest(odd, [column.name for column in columns])
            errors[number] = f"there is no column {quoted(odd)}{f'; {hint}' if hint else ''}"
        try:
            texts.append(orjson.dumps({k.strip("`"): v for k, v in row.items()}, default=str))
        except TypeError as error:
            errors[number] = f"it is not valid JSON: {error}"
            texts.append(b"{}")
    type_ = pa.struct([(column.name, column.type) for column in columns])
    decoded = format_named("sql_json").decode(pa.array(texts, pa.binary()), declared_schema(type_))
    errors = {**decoded.errors, **errors}
    good = [number for number in range(len(rows)) if number not in errors]
    struct: Any = decoded.column
    given = {name.strip("`").upper() for row in rows for name in row}
    present = [column for column in columns if column.name.upper() in given]
    picked = struct.take(pa.array(good, pa.int64()))
    values = {column.name: pa.compute.struct_field(picked, column.name) for column in present}
    failed, _ = _append(database.broker, source, values, len(good), _without_values(source, rows, good))
    return dict(sorted({**errors, **{good[row]: reason for row, reason in failed.items()}}.items()))


def _without_values(source: Source, rows: Sequence[Mapping[str, Any]], good: Sequence[int]) -> np.ndarray[Any, Any]:
    values = {column.name.upper() for column in source.values}
    return np.array([values.isdisjoint(name.strip("`").upper() for name in rows[row]) for row in good], np.bool_)


def writable(database: Database, name: str, location: SourceLocation | None) -> Source:
    """Return a stream or table by name; raise if it does not accept inserts."""
    source = database.catalog.source(name, location)
    if source.read_only:
        hint = "it was created with CREATE SOURCE"
        raise Refused(f"{quoted(name)} is read-only", hint=hint, location=location)
    if source.window is not None:
        hint = "insert into the source of its query"
        raise Refused(f"{quoted(name)} is windowed and does not accept inserts", hint=hint, location=location)
    if source.is_table and source.query:
        hint = "insert into the sources of that query"
        raise Refused(f"table {quoted(name)} is written by query {source.query}", hint=hint, location=location)
    return source


def _insertable(source: Source) -> list[SourceColumn]:
    """Return the columns that can be inserted, key columns first, in the order of `*`."""
    return [*source.keys, *source.values]


def _named(source: Source, statement: ast.InsertValues) -> list[SourceColumn]:
    """Return the columns that the values are for."""
    columns = {column.name: column for column in (*_insertable(source), SourceColumn(ROWTIME, BIGINT))}
    names = statement.columns or tuple(column.name for column in _insertable(source))
    for index, name in enumerate(names):
        if name in names[:index]:
            hint = "name each column once"
            raise Refused(f"column {quoted(name)} is listed twice", hint=hint, location=statement.at)
        if name not in columns:
            raise _unknown(source, name, list(columns), statement.at)
    if len(names) != len(statement.values):
        hint = f"the columns are {', '.join(map(quoted, names))}"
        raise Refused(
            f"{len(names)} columns and {len(statement.values)} values do not match", hint=hint, location=statement.at
        )
    return [columns[name] for name in names]


def _unknown(source: Source, name: str, known: Sequence[str], location: SourceLocation) -> Refused | UnknownName:
    if any(column.name == name for column in source.headers):
        return Refused(
            f"{quoted(name)} is a HEADERS column and cannot be inserted", hint="leave it out", location=location
        )
    hint = closest(name, known) or f"the columns are {', '.join(map(quoted, known))}"
    return UnknownName(f"{quoted(source.name)} has no column {quoted(name)}", hint=hint, location=location)


def _append(
    broker: Broker, source: Source, columns: Columns, rows: int, bare: np.ndarray[Any, Any] | None = None
) -> tuple[Errors, Position]:
    """Append rows given as columns. Rows of a table marked in `bare` have only a key and are deletes."""
    if bare is None:
        bare = np.full(rows, not any(column.name in columns for column in source.values))
    errors = _without_key(source, columns, rows)
    key, failed = _encoded_key(source, columns, rows)
    errors = {**failed, **errors}
    value_type = source.value_type
    made = [columns.get(c.name, pa.nulls(rows, c.type)) for c in source.values]
    deleted = pa.array(bare) if source.is_table and made else None
    # Arrow cannot infer the length of a struct without fields.
    fields = pa.StructArray.from_arrays(made, fields=list(value_type), mask=deleted) if made else None
    struct = pa.array([{}] * rows, value_type) if fields is None else fields
    times = columns.get(ROWTIME, pa.nulls(rows, BIGINT))
    headers = pa.nulls(rows, HEADERS)
    encoded: Encoded | Written
    if source.value_format == FORMAT:
        encoded = _as_events(struct, times)
        headers = pa.array([own or None for own in encoded.headers], HEADERS)
    else:
        encoded = format_named(source.value_format).encode(struct, source.value_schema)
    errors = {**encoded.errors, **errors}
    batch = pa.RecordBatch.from_arrays(
        [key, encoded.values.cast(pa.binary()), times, pa.nulls(rows, pa.int64()), headers],
        ["key", "value", "timestamp", "ingested", "headers"],
    )
    errors = {**broker.unfit(source.topic, batch), **errors}
    good = [row for row in range(rows) if row not in errors]
    if not good:
        return errors, Position()
    results = broker.append(source.topic, batch if len(good) == rows else batch.take(pa.array(good)))
    return errors, position_of(source.topic, results)


def _as_events(struct: pa.Array, times: pa.Array) -> Written:
    """Encode rows as CloudEvents; one without an id gets a random one."""
    known = [now_ms() if time is None else time for time in times.to_pylist()]
    return encode_rows(struct, [None] * len(struct), known, _SOURCE, lambda *_: str(uuid.uuid4()))


def _without_key(source: Source, columns: Columns, rows: int) -> Errors:
    if not source.is_table:
        return {}
    errors: Errors = {}
    for column in source.keys:
        missing = columns[column.name].is_null().to_pylist() if column.name in columns else [True] * rows
        reason = f"a row of a table needs its primary key {quoted(column.name)}"
        errors.update({row: reason for row, is_missing in enumerate(missing) if is_missing})
    return errors


def _encoded_key(source: Source, columns: Columns, rows: int) -> tuple[pa.Array, Errors]:
    if not source.keys:
        return pa.nulls(rows, pa.binary()), {}
    made = [columns.get(c.name, pa.nulls(rows, c.type)) for c in source.keys]
    key = made[0]
    if len(made) > 1:
        absent = np.logical_and.reduce([column.is_null().to_numpy(zero_copy_only=False) for column in made])
        fields = [pa.field(column.name, column.type) for column in source.keys]
        key = pa.StructArray.from_arrays(made, fields=fields, mask=pa.array(absent))
    serde = key_serde(source)
    encoded = format_named(serde.format).encode(key, serde.schema)
    return encoded.values.cast(pa.binary()), encoded.errors
