"""Conversion of values: from columns to what agents see, to the bytes of a topic, and to the data of a cell."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any

import orjson
import pyarrow as pa

from potok.errors import PotokError, SchemaError
from potok.faust.records.model import NAMESPACE, Model, model_named
from potok.faust.records.read_all import read_all
from potok.faust.records.record_plan import defaults_of, nested_fields, reads_itself
from potok.operators.agents.context import Unfit
from potok.operators.agents.values import IMMUTABLE, copied
from potok.operators.core.call import describe_error
from potok.records.formats.registry import format_named
from potok.records.rows import rows_of
from potok.records.schemas.annotations import leaves_open
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema

JSON = "json"

NONE: frozenset[type] = frozenset()

PLAIN = "dict"
"""The namespace of a value that is not a record, where one was declared."""


def schema_of(value_type: Any, *, instants: bool = False) -> Schema | None:
    """Return the columns of a type, or None if its values are dynamic: for `dict`, and for a type with a field that is
    an untyped list, one of several types, or an instant, unless instants may be columns.
    """
    if isinstance(value_type, type) and issubclass(value_type, Model) and reads_itself(value_type, instants=instants):
        return None
    if leaves_open(value_type):
        return None
    try:
        return None if value_type is None else declared_schema(value_type)
    except SchemaError:
        if isinstance(value_type, type) and issubclass(value_type, Model):
            return None
        raise


def model_in(value_type: Any) -> type[Model] | None:
    """Return a declared type, if it is a record class, ready to be pickled."""
    if not (isinstance(value_type, type) and issubclass(value_type, Model)):
        return None
    value_type.prepare()
    return value_type


class Revive:
    """Converts a column of a topic to what agents see: records, if the topic has a record class."""

    def __init__(self, value_type: Any) -> None:
        self._model = model_in(value_type)

    def __eq__(self, other: object) -> bool:
        return type(other) is Revive and other._model is self._model

    def __hash__(self) -> int:
        return hash(self._model)

    def __call__(self, column: Any) -> list[Any]:
        return self.several(column, 1)[0]

    def several(self, column: Any, count: int) -> list[list[Any]]:
        """Return the objects, separately for each of several agents."""
        if isinstance(column, list):
            together = None if self._model is None else read_all(self._model, column, count)
            return together or [[self._dynamic(item) for item in column] for _ in range(count)]
        if self._model is not None and pa.types.is_struct(column.type):
            first = self._structs(column, self._model)
        else:
            first = [_plain_dict(row) for row in rows_of(column)]
        return [first, *([copied(item) for item in first] for _ in range(count - 1))]

    def _dynamic(self, item: Any) -> Any:
        if item is None:
            return None
        if self._model is None:
            return copied(item) if type(item) is not dict or NAMESPACE not in item else thawed(item)
        try:
            fields = (made := self._model.from_data(item)).__dict__
            for name, value in fields.items():
                if type(value) not in IMMUTABLE:
                    fields[name] = copied(value)
            return made
        except PotokError as error:
            return Unfit(error.message)
        except Exception as error:  # noqa: BLE001 - a record class may do anything with what it is given
            return Unfit(describe_error(error))

    def _structs(self, column: pa.StructArray, model: type[Model]) -> list[Any]:
        names = [field.name for field in column.type]
        nested = any(pa.types.is_nested(field.type) for field in column.type)
        if nested:
            return [None if row is None else model.from_data(dict(row)) for row in rows_of(column)]
        parts = [rows_of(column.field(name)) for name in names]
        made = [_made(model, dict(zip(names, row, strict=True))) for row in zip(*parts, strict=True)]
        if column.null_count:
            return [row if there else None for row, there in zip(made, column.is_valid().to_pylist(), strict=True)]
        return made


def _made(model: type[Model], fields: dict[str, Any]) -> Model:
    record = model.__new__(model)
    record.__dict__ = fields
    return record


def _plain_dict(row: Any) -> Any:
    return dict(row) if isinstance(row, dict) else row


class Freeze:
    """Converts a value to the data of a cell; a record of the declared class does not store its class."""

    def __init__(self, value_type: Any) -> None:
        self._model = self.flat = model_in(value_type)
        """The classes whose objects are stored as their fields."""

    def __call__(self, value: Any) -> Any:
        if type(value) in IMMUTABLE:
            return value
        if type(value) is self._model:
            return _fields(value)
        if self._model is not None and type(value) is dict:
            return {**_frozen(value), NAMESPACE: {"ns": PLAIN}}
        return _frozen(value)


def _fields(record: Model) -> dict[str, Any]:
    nested = nested_fields(type(record))
    if not nested:
        return {name: _frozen(item) for name, item in vars(record).items()}
    return {name: _frozen(item, nested[name][0] if name in nested else NONE) for name, item in vars(record).items()}


def _frozen(value: Any, enums: frozenset[type] = NONE) -> Any:
    """Return a value as data; records of the classes that are `enums` by the context do not store their class."""
    if type(value) in IMMUTABLE:
        return value
    if isinstance(value, Enum) and type(value) in enums:
        return value.value
    if isinstance(value, Model):
        fields = _fields(value)
        return fields if type(value) in enums else {**fields, NAMESPACE: {"ns": value.__namespace__}}
    if type(value) is dict:
        return {key: _frozen(item, enums) for key, item in value.items()}
    if type(value) in (list, tuple, set):
        return type(value)(_frozen(item, enums) for item in value)
    return value


class Thaw:
    """Converts the data of a cell to a value."""

    def __init__(self, value_type: Any) -> None:
        self._model = model_in(value_type)

    def __call__(self, data: Any) -> Any:
        if type(data) in IMMUTABLE:
            return data
        if self._model is not None and type(data) is dict and NAMESPACE not in data:
            if IMMUTABLE.issuperset(map(type, data.values())):
                return _made(self._model, _whole(self._model, data.copy()))
            return _thawed_record(self._model, data)
        return thawed(data)


def _thawed_record(model: type[Model], data: dict[str, Any]) -> Model:
    nested = nested_fields(model)
    fields = {name: nested[name][1](item) if name in nested else thawed(item) for name, item in data.items()}
    return _made(model, _whole(model, fields))


def _whole(model: type[Model], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record that was stored before its class had all of its fields, completed with
    defaults.
    """
    if tuple(fields) != model.__record_fields__:  # type: ignore[attr-defined]
        for name, default in defaults_of(model).items():
            if name not in fields:
                fields[name] = default()
    return fields


def thawed(data: Any) -> Any:
    """Return the value of frozen data."""
    if type(data) in IMMUTABLE:
        return data
    if type(data) is dict:
        note = data.get(NAMESPACE)
        model = model_named(str(note.get("ns"))) if isinstance(note, dict) else None
        if note is not None and model is None and note != {"ns": PLAIN}:
            raise SchemaError(f"no record class is called {note!r}", hint="import the module that defines it")
        fields = {key: item for key, item in data.items() if key != NAMESPACE}
        if model is not None:
            return _thawed_record(model, fields)
        return {key: thawed(item) for key, item in fields.items()}
    if type(data) in (list, tuple, set):
        return type(data)(map(thawed, data))
    return data


Encode = Callable[[Any], bytes | None]


def value_encoder(serializer: str, value_type: Any) -> Encode:
    """Return the function that serializes a value; None stays None."""
    if serializer == JSON:
        return _json
    format_ = format_named(serializer)
    schema = schema_of(value_type)

    def encode(value: Any) -> bytes | None:
        if value is None or (serializer == "raw" and isinstance(value, bytes)):
            return value
        if serializer == "raw" and isinstance(value, str):
            return value.encode()
        from potok.records.rows import column_of

        if schema is None:
            encoded = format_.encode([_frozen(value)], None)
        else:
            column = column_of([_frozen(value)], schema)
            if column.errors:
                raise ValueError(column.errors[0])
            encoded = format_.encode(column.column, schema)
        if encoded.errors:
            raise ValueError(encoded.errors[0])
        found: bytes | None = encoded.values[0].as_py()
        return found

    return encode


def key_bytes(key: Any) -> bytes | None:
    """Return text as UTF-8, bytes unchanged, anything else as JSON."""
    if key is None or type(key) is bytes:
        return key
    return key.encode() if type(key) is str else _json(key)


_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS


def _json(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, Model):
        value = value.written() if value.__shaped__ else vars(value)
    # A copy: the buffer that orjson returns was shrunk from a kilobyte, and keeping many of them is ten times
    # slower.
    return bytes(memoryview(orjson.dumps(value, _other, _OPTIONS)))


def _other(value: Any) -> Any:
    if isinstance(value, Model):
        return value.written()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
