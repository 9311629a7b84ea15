"""The catalog of an app for SQL statements: topics of records are streams, tables are tables, and fields are
columns.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from potok.faust.records.fields import FieldDescriptor
from potok.faust.records.record import Record
from potok.sql.catalog import Catalog, Source, SourceColumn, StoredTable, WindowShape
from potok.sql.types import BIGINT, BOOLEAN, BYTES, DOUBLE, VARCHAR, array, decimal, map_of, struct
from potok.statements.catalog.stored_values import KEY, VALUE, StoredRow, StoredValue, any_key, same_key, sql_name
from potok.topology.nodes import Hopping

if TYPE_CHECKING:
    from potok.faust.app import App
    from potok.faust.messaging.topic import Topic
    from potok.faust.tables.tables import Table

_SCALARS: dict[Any, pa.DataType] = {str: VARCHAR, int: BIGINT, float: DOUBLE, bool: BOOLEAN, Decimal: decimal(38, 18)}


def catalog_of(app: App, key_types: Mapping[str, pa.DataType | None]) -> Catalog:
    """Return the catalog; `key_types` are those of the tables' cells."""
    found: dict[str, Source] = {}
    taken = {sql_name(table) for table in app.tables}
    for topic in app.topics:
        for name in topic.names if isinstance(topic.value_type, type) and topic.serializer == "json" else ():
            # In a statement, a table takes precedence over a stream of the same name.
            called = f"{sql_name(name)}_TOPIC" if sql_name(name) in taken else sql_name(name)
            if issubclass(topic.value_type, Record) and called not in found:
                found[called] = _stream(topic, name, called)
    for table in app.tables.values():
        found[sql_name(table.name)] = _table(app, table, key_types.get(table.name))
    return Catalog(found)


def _stream(topic: Topic, name: str, called: str) -> Source:
    fields = _fields(topic.value_type, frozenset())
    columns = [SourceColumn(field, type_) for field, type_ in fields]
    key_format = "none"
    if topic.key_type is not None and (key_type := column_type(topic.key_type)) != BYTES:
        key_format = "kafka" if key_type == VARCHAR else "sql_json"
        columns.insert(0, SourceColumn(_free(KEY, fields), key_type, is_key=True))
    spelled = ",".join(sorted(_spellings(topic.value_type)))
    return Source(called, False, tuple(columns), name, key_format, f"sql_json;names={spelled}")


def _table(app: App, table: Table, key_type: pa.DataType | None) -> Source:
    fields = _value_fields(table)
    rows = StoredRow(table.name, tuple(fields), table_model(table) is not None)
    declared = None if table.key_type is None else column_type(table.key_type)
    type_ = declared or (VARCHAR if key_type is None else key_type)
    columns = [SourceColumn(_free(KEY, fields), type_, is_key=True), *(SourceColumn(*field) for field in fields)]
    window = None if table.windowed is None else _window(table.windowed.window)
    stored_table = StoredTable(
        table.name, rows, StoredValue(table.name, type_), any_key if key_type is None else same_key
    )
    return Source(
        sql_name(table.name),
        True,
        tuple(columns),
        table.changelog,
        "sql_json",
        # A value that is not a record is unwrapped in the changelog topic.
        "sql_json" if rows.is_record else "sql_json;wrap=false",
        window=window,
        query=app.id,
        table_of=app.id,
        stored_table=stored_table,
    )


def _window(window: Any) -> WindowShape:
    return WindowShape("HOPPING" if isinstance(window, Hopping) else "TUMBLING", window.size_ms)


def _free(name: str, fields: Iterable[tuple[str, pa.DataType]]) -> str:
    return name if all(name != field for field, _ in fields) else f"ROW{name}"


def table_model(table: Table) -> type[Record] | None:
    kind = table.value_type
    return kind if isinstance(kind, type) and issubclass(kind, Record) else None


def _value_fields(table: Table) -> list[tuple[str, pa.DataType]]:
    model = table_model(table)
    if model is not None:
        return _fields(model, frozenset())
    kind = table.value_type if table.value_type is not None or table.default is None else type(table.default())
    return [(VALUE, VARCHAR if kind is None else column_type(kind))]


def _fields(model: type[Record], seen: frozenset[type]) -> list[tuple[str, pa.DataType]]:
    hints = typing.get_type_hints(model)
    names: tuple[str, ...] = getattr(model, "__record_fields__", ())
    return [(name.upper(), column_type(hints[name], seen | {model})) for name in names]


def _spellings(annotation: Any, seen: frozenset[type] = frozenset()) -> set[str]:
    """Return the spelling of the fields of a record and of nested records."""
    if isinstance(annotation, type) and issubclass(annotation, Record) and annotation not in seen:
        hints = typing.get_type_hints(annotation)
        names = set(getattr(annotation, "__record_fields__", ()))
        return names.union(*(_spellings(hints[name], seen | {annotation}) for name in names))
    return set[str]().union(*(_spellings(part, seen) for part in typing.get_args(annotation)))


def column_type(annotation: Any, seen: frozenset[type] = frozenset()) -> pa.DataType:
    """Return the SQL type for a field of a record. A field without one is its JSON text."""
    if isinstance(annotation, FieldDescriptor):
        annotation = annotation.type
    if isinstance(annotation, typing.NewType):
        return column_type(annotation.__supertype__, seen)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return column_type(arguments[0], seen)
    if origin in (typing.Union, types.UnionType):
        choices = [choice for choice in arguments if choice is not types.NoneType]
        return column_type(choices[0], seen) if len(choices) == 1 else VARCHAR
    kind = origin or annotation
    if kind in (list, set, frozenset, tuple):
        return array(column_type(arguments[0], seen) if arguments else VARCHAR)
    if kind is dict:
        return map_of(VARCHAR, column_type(arguments[1], seen) if len(arguments) == 2 else VARCHAR)
    if isinstance(kind, type) and issubclass(kind, Record):
        return VARCHAR if kind in seen else struct(_fields(kind, seen))
    return BYTES if kind is bytes else _SCALARS.get(kind, VARCHAR)
