"""Map keys and values of records to the columns of a table in another system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import TopologyError
from potok.sinks.sink_spec import Failures, Types

THERE = "potok_there"
"""Of the prepared values: whether there is one."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column, and its field; an empty field is the whole key or value, and no type is dynamic."""

    name: str
    field: str
    type: pa.DataType | None
    is_key: bool


def table_columns(types: Types, key: Sequence[str], renamed: Mapping[str, str]) -> tuple[TableColumn, ...]:
    """Return the columns, those of the primary key first.

    A row is identified by the record's key, or by the fields of the value that `key` names. A field of the value with
    the name of a key column is that column.
    """
    values = _fields("value", types.value, is_key=False)
    if key:
        keys = [_key_field(name, values) for name in key]
        values = [column for column in values if column.field not in key]
    else:
        keys = _fields("key", types.key, is_key=True)
    missing = sorted(set(renamed) - {column.name for column in (*keys, *values)})
    if missing:
        known = ", ".join(f'"{column.name}"' for column in (*keys, *values))
        raise TopologyError(f'columns= renames "{missing[0]}", which is not there', hint=f"there are {known}")
    taken = {column.name for column in keys}
    keys = [_renamed(column, renamed) for column in keys]
    rest = {name: new for name, new in renamed.items() if key or name not in taken}
    values = [_renamed(column, rest) for column in values]
    return (*keys, *_apart(keys, values))


def _fields(whole: str, arrow: pa.DataType | None, *, is_key: bool) -> list[TableColumn]:
    if arrow is not None and pa.types.is_struct(arrow):
        return [TableColumn(field.name, field.name, field.type, is_key) for field in arrow]
    return [TableColumn(whole, "", arrow, is_key)]


def _key_field(name: str, values: list[TableColumn]) -> TableColumn:
    for column in values:
        if column.field == name:
            return TableColumn(name, name, column.type, is_key=True)
    known = ", ".join(f'"{column.field}"' for column in values if column.field)
    hint = f"its fields are {known}" if known else "leave key= out: rows are then identified by the key of their record"
    raise TopologyError(f'key= names "{name}", which is not a field of the value', hint=hint)


def _renamed(column: TableColumn, renamed: Mapping[str, str]) -> TableColumn:
    return TableColumn(renamed.get(column.name, column.name), column.field, column.type, column.is_key)


def _apart(keys: list[TableColumn], values: list[TableColumn]) -> list[TableColumn]:
    """Return the columns of the value that are not columns of the key."""
    types = {column.name: column.type for column in keys}
    for column in values:
        if column.name in types and column.type != types[column.name]:
            raise TopologyError(
                f'both the key and the value of a record have a column "{column.name}"',
                hint=f'rename that of the key: columns={{"{column.name}": "record_{column.name}"}}',
            )
    return [column for column in values if column.name not in types]


def null_keys(columns: Sequence[tuple[TableColumn, pa.Array]]) -> Failures:
    """Return the records with a null in a column of the primary key."""
    failures: Failures = {}
    for column, texts in columns:
        if texts.null_count:
            what = f'the key column "{column.name}" is null'
            failures |= dict.fromkeys(pc.indices_nonzero(texts.is_null()).to_pylist(), what)
    return failures
