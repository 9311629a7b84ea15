"""Expose the state of programs as SQL columns: no statement declares them, and a cell holds Python data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from potok.errors import StateError
from potok.sql.types import BOOLEAN, BYTES, VARCHAR, struct, type_name

KEY, VALUE = "KEY", "VALUE"


class NotOfItsType(StateError):
    """A row whose value does not match the declared type of its table."""

    def __init__(self, table: str, value: Any, type_: pa.DataType) -> None:
        super().__init__(
            f'table "{table}" holds {value!r}, but statements expect {type_name(type_)}'[:300],
            hint="declare the types of the table, in Faust: app.Table(..., key_type=str, value_type=float)",
        )


def sql_name(name: str) -> str:
    """Return a name as a SQL identifier: `high-value-orders` is HIGH_VALUE_ORDERS."""
    return "".join(letter if letter.isalnum() else "_" for letter in name).upper()


@dataclass(frozen=True, slots=True)
class StoredValue:
    """Converts data of a cell to a SQL value."""

    table: str
    type: pa.DataType

    def __call__(self, value: Any) -> Any:
        return _converted(value, self.type, self._refuse)

    def _refuse(self, value: Any, type_: pa.DataType) -> Any:
        raise NotOfItsType(self.table, value, type_)


@dataclass(frozen=True, slots=True)
class StoredRow:
    """Converts data of cells to the columns of a table: the fields of a record, or one column with the value itself."""

    table: str
    fields: tuple[tuple[str, pa.DataType], ...]
    is_record: bool

    def __call__(self, value: Any) -> dict[str, Any]:
        if not self.is_record:
            (name, type_) = self.fields[0]
            return {name: StoredValue(self.table, type_)(value)}
        whole: dict[str, Any] = StoredValue(self.table, struct(list(self.fields)))(value)
        return whole


def as_json(value: Any) -> dict[str, Any]:
    """Return the only column of a table whose values have no declared type, as JSON text."""
    return {VALUE: None if value is None else json_text(value)}


def json_text(value: Any) -> str:
    try:
        return orjson.dumps(value, _plain, orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        return orjson.dumps(str(value)).decode()


def same_key(key: Any) -> tuple[Any, ...]:
    return (key,)


def any_key(key: Any) -> tuple[Any, ...]:
    """Return the keys that a text may represent in a table with keys of any type: the text itself, or its JSON
    value."""
    try:
        return (key, orjson.loads(key)) if isinstance(key, str) else (key,)
    except orjson.JSONDecodeError:
        return (key,)


def _plain(value: Any) -> Any:
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else str(value)


def _converted(value: Any, type_: pa.DataType, refuse: Callable[[Any, pa.DataType], Any]) -> Any:
    if value is None:
        return None
    if type_ == VARCHAR:
        return _text(value)
    if pa.types.is_struct(type_):
        if not isinstance(value, dict):
            return refuse(value, type_)
        folded = {str(name).upper(): item for name, item in value.items()}
        return {field.name: _converted(folded.get(field.name), field.type, refuse) for field in type_}
    if pa.types.is_map(type_):
        if not isinstance(value, dict):
            return refuse(value, type_)
        return {_text(key): _converted(item, type_.item_type, refuse) for key, item in value.items()}
    if pa.types.is_list(type_):
        if not isinstance(value, list | tuple | set | frozenset):
            return refuse(value, type_)
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [_converted(item, type_.value_type, refuse) for item in items]
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
