"""An app as statements know it: topics of records are streams, tables are tables, and their fields are columns."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from potok.errors import StateError
from potok.faust.records.fields import FieldDescriptor
from potok.faust.records.record import Record
from potok.sql.catalog import Catalog, Kept, Source, SourceColumn, WindowShape
from potok.sql.types import BIGINT, BOOLEAN, BYTES, DOUBLE, VARCHAR, array, decimal, map_of, struct, type_name
from potok.topology.nodes import Hopping

if TYPE_CHECKING:
    from potok.faust.app import App
    from potok.faust.tables.tables import Table
    from potok.faust.topic import Topic

KEY, VALUE = "KEY", "VALUE"
_SCALARS: dict[Any, pa.DataType] = {str: VARCHAR, int: BIGINT, float: DOUBLE, bool: BOOLEAN, Decimal: decimal(38, 18)}


class NotOfItsType(StateError):
    """A row that holds something else than its table says."""

    def __init__(self, table: str, value: Any, type_: pa.DataType) -> None:
        super().__init__(
            f'table "{table}" holds {value!r}, where statements expect {type_name(type_)}'[:300],
            hint="say what it holds: app.Table(..., key_type=str, value_type=float)",
        )


def sql_name(name: str) -> str:
    """`high-value-orders` is HIGH_VALUE_ORDERS."""
    return "".join(letter if letter.isalnum() else "_" for letter in name).upper()


def catalog_of(app: App, key_types: Mapping[str, pa.DataType | None]) -> Catalog:
    """`key_types` are those that the tables have in the cells."""
    found: dict[str, Source] = {}
    taken = {sql_name(table) for table in app.tables}
    for topic in app.topics:
        for name in topic.names if isinstance(topic.value_type, type) and topic.serializer == "json" else ():
            # A table of the same name is what a statement means by it.
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
    rows = Rows(table.name, tuple(fields), table_model(table))
    declared = None if table.key_type is None else column_type(table.key_type)
    type_ = declared or (VARCHAR if key_type is None else key_type)
    columns = [SourceColumn(_free(KEY, fields), type_, is_key=True), *(SourceColumn(*field) for field in fields)]
    window = None if table.windowed is None else _window(table.windowed.window)
    kept = Kept(table.name, rows, Shown(table.name, type_), _any_key if key_type is None else _same_key)
    return Source(
        sql_name(table.name),
        True,
        tuple(columns),
        table.changelog,
        "sql_json",
        # What is no record stands bare in the topic of changes.
        "sql_json" if rows.model is not None else "sql_json;wrap=false",
        window=window,
        query=app.id,
        table_of=app.id,
        kept=kept,
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
    """How the fields of a record, and of those in it, are spelled."""
    if isinstance(annotation, type) and issubclass(annotation, Record) and annotation not in seen:
        hints = typing.get_type_hints(annotation)
        names = set(getattr(annotation, "__record_fields__", ()))
        return names.union(*(_spellings(hints[name], seen | {annotation}) for name in names))
    return set[str]().union(*(_spellings(part, seen) for part in typing.get_args(annotation)))


def column_type(annotation: Any, seen: frozenset[type] = frozenset()) -> pa.DataType:
    """The type of SQL for a field of a record. What has none is text: as it is spelled in JSON."""
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


@dataclass(frozen=True, slots=True)
class Shown:
    """Data of a cell as a value of SQL."""

    table: str
    type: pa.DataType

    def __call__(self, value: Any) -> Any:
        return _shown(value, self.type, self._refuse)

    def _refuse(self, value: Any, type_: pa.DataType) -> Any:
        raise NotOfItsType(self.table, value, type_)


@dataclass(frozen=True, slots=True)
class Rows:
    """Data of cells as the columns of a table: fields of a record, or the value itself."""

    table: str
    fields: tuple[tuple[str, pa.DataType], ...]
    model: type[Record] | None

    def __call__(self, value: Any) -> dict[str, Any]:
        if self.model is None:
            (name, type_) = self.fields[0]
            return {name: Shown(self.table, type_)(value)}
        whole: dict[str, Any] = Shown(self.table, struct(list(self.fields)))(value)
        return whole


def _same_key(key: Any) -> tuple[Any, ...]:
    return (key,)


def _any_key(key: Any) -> tuple[Any, ...]:
    """The keys that a text may stand for, where a table may have keys of any kind: itself, or what it is as JSON."""
    try:
        return (key, orjson.loads(key)) if isinstance(key, str) else (key,)
    except orjson.JSONDecodeError:
        return (key,)


def _shown(value: Any, type_: pa.DataType, refuse: Callable[[Any, pa.DataType], Any]) -> Any:
    if value is None:
        return None
    if type_ == VARCHAR:
        return _text(value)
    if pa.types.is_struct(type_):
        if not isinstance(value, dict):
            return refuse(value, type_)
        folded = {str(name).upper(): item for name, item in value.items()}
        return {field.name: _shown(folded.get(field.name), field.type, refuse) for field in type_}
    if pa.types.is_map(type_):
        if not isinstance(value, dict):
            return refuse(value, type_)
        return {_text(key): _shown(item, type_.item_type, refuse) for key, item in value.items()}
    if pa.types.is_list(type_):
        if not isinstance(value, list | tuple | set | frozenset):
            return refuse(value, type_)
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [_shown(item, type_.value_type, refuse) for item in items]
    return _scalar(value, type_, refuse)


def _scalar(value: Any, type_: pa.DataType, refuse: Callable[[Any, pa.DataType], Any]) -> Any:
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if pa.types.is_integer(type_):
        return int(value) if number and value == value // 1 else refuse(value, type_)
    if pa.types.is_floating(type_):
        return float(value) if number else refuse(value, type_)
    if pa.types.is_decimal(type_):
        return Decimal(str(value)) if number else refuse(value, type_)
    kind = {BOOLEAN: bool, BYTES: bytes}.get(type_, object)
    return value if isinstance(value, kind) else refuse(value, type_)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    if isinstance(value, dict | list | tuple | bool | int | float):
        return orjson.dumps(value, str, orjson.OPT_NON_STR_KEYS).decode()
    return ", ".join(sorted(map(_text, value))) if isinstance(value, set | frozenset) else str(value)
