"""Convert annotations of a user's function to SQL types, and values in both directions."""

from __future__ import annotations

import dataclasses
import datetime as dt
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from decimal import Context as Precision
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from potok.records.schemas.column_types import DECIMAL
from potok.sql.functions.comparing import has_order
from potok.sql.functions.function import widens
from potok.sql.types import BIGINT, BOOLEAN, BYTES, DATE, DOUBLE, INT, NULL, TIME, TIMESTAMP, VARCHAR, decimal

_SCALARS: Final[dict[Any, pa.DataType]] = {
    bool: BOOLEAN,
    int: BIGINT,
    float: DOUBLE,
    str: VARCHAR,
    bytes: BYTES,
    Decimal: DECIMAL,
    dt.date: DATE,
    dt.time: TIME,
    dt.datetime: TIMESTAMP,
}
_EXACT: Final = Precision(prec=80)


class NoType(Exception):
    """An annotation for which SQL has no type. Callers convert it to an error with a position."""


@dataclass(frozen=True, slots=True)
class UserType:
    """The meaning of an annotation: the SQL type, and how values that are not plain are converted."""

    type: pa.DataType
    nullable: bool = False
    """Whether the annotation has `| None`: only then is the function called with NULL."""
    parts: tuple[UserType, ...] = ()
    """The items of a list, the keys and values of a dict, or the fields of a dataclass."""
    record: type | None = None
    """The dataclass that represents a struct."""
    exact: bool = True
    """False for a bare Decimal, which takes decimals of every scale."""

    @property
    def is_plain(self) -> bool:
        """Whether values are passed unchanged."""
        return self.record is None and all(part.is_plain for part in self.parts)

    def read(self, value: Any) -> Any:
        """Convert an SQL value for the function: structs become dataclasses."""
        if value is None or self.is_plain:
            return value
        if self.record is not None:
            given = {name.upper(): item for name, item in value.items()}
            names = _field_names(self.record)
            fields = zip(names, self.parts, strict=True)
            return self.record(**{name: part.read(given.get(name.upper())) for name, part in fields})
        if pa.types.is_map(self.type):
            return {key: self.parts[1].read(item) for key, item in value.items()}
        return [self.parts[0].read(item) for item in value]

    def write(self, value: Any) -> Any:
        """Convert a result of the function to plain data."""
        if value is None:
            return None
        if self.record is not None:
            names = zip(_field_names(self.record), self.parts, strict=True)
            return {name.upper(): part.write(getattr(value, name)) for name, part in names}
        if pa.types.is_map(self.type):
            return {self.parts[0].write(key): self.parts[1].write(item) for key, item in value.items()}
        if pa.types.is_list(self.type):
            return [self.parts[0].write(item) for item in value]
        return _write_scalar(value, self.type)


def _field_names(record: type) -> list[str]:
    return [field.name for field in dataclasses.fields(record)]


def _write_scalar(value: Any, type_: pa.DataType) -> Any:
    """Truncate instants and times to milliseconds, and give decimals the scale of their type."""
    if isinstance(value, dt.datetime | dt.time):
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    if isinstance(value, Decimal) and pa.types.is_decimal(type_):
        return value.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP, _EXACT)
    return value


def user_type(annotation: Any) -> UserType:
    """Return the meaning of an annotation; raises `NoType`."""
    if isinstance(annotation, pa.DataType):
        return UserType(annotation)
    if annotation in _SCALARS:
        return UserType(_SCALARS[annotation], exact=annotation is not Decimal)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _optional(arguments)
    if origin is Annotated:
        return _annotated(arguments)
    if origin is list and len(arguments) == 1:
        item = user_type(arguments[0])
        return UserType(pa.list_(item.type), parts=(item,))
    if origin is dict and len(arguments) == 2:
        return _map(*map(user_type, arguments))
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return _struct(annotation)
    raise NoType


def _optional(choices: tuple[Any, ...]) -> UserType:
    others = [choice for choice in choices if choice is not type(None)]
    if len(others) != 1 or len(others) == len(choices):
        raise NoType
    return dataclasses.replace(user_type(others[0]), nullable=True)


def _annotated(arguments: tuple[Any, ...]) -> UserType:
    """`Annotated[Decimal, pa.decimal128(10, 2)]` and `Annotated[int, pa.int32()]` name the type themselves."""
    declared = next((note for note in arguments[1:] if isinstance(note, pa.DataType)), None)
    return user_type(arguments[0] if declared is None else declared)


def _map(key: UserType, item: UserType) -> UserType:
    if not has_order(key.type) or key.nullable:
        raise NoType
    return UserType(pa.map_(key.type, item.type), parts=(key, item))


def _struct(record: type) -> UserType:
    """Fields have upper-case names, like names that a statement writes without quotes."""
    hints = get_type_hints(record, include_extras=True)
    names = _field_names(record)
    if not names:
        raise NoType
    parts = tuple(user_type(hints[name]) for name in names)
    fields = [(name.upper(), part.type) for name, part in zip(names, parts, strict=True)]
    return UserType(pa.struct(fields), parts=parts, record=record)


def items_type(annotation: Any) -> UserType:
    """Return the type of the rows of a table function: T of list[T], Iterator[T], Iterable[T] or Generator[T, ...]."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if not isinstance(origin, type) or not issubclass(origin, list | Iterable | Iterator) or not arguments:
        raise NoType
    if issubclass(origin, dict):
        raise NoType
    return user_type(arguments[0])


def fitted(given: pa.DataType, wanted: UserType) -> pa.DataType | None:
    """Return the type to which an argument is cast; None if it cannot be cast. Only the fields of a struct that the
    dataclass has are passed; the case of their names does not matter."""
    type_ = wanted.type
    if given == NULL:
        return type_
    if pa.types.is_decimal(type_) and not wanted.exact:
        return {INT: decimal(10, 0), BIGINT: decimal(19, 0)}.get(given, given if pa.types.is_decimal(given) else None)
    if wanted.record is not None:
        return _fitted_struct(given, wanted) if pa.types.is_struct(given) else None
    if wanted.parts and pa.types.is_list(type_) and pa.types.is_list(given):
        return _made(pa.list_, [fitted(given.value_type, wanted.parts[0])])
    if wanted.parts and pa.types.is_map(type_) and pa.types.is_map(given):
        pairs = zip((given.key_type, given.item_type), wanted.parts, strict=True)
        return _made(pa.map_, [fitted(one, part) for one, part in pairs])
    return type_ if widens(given, type_) else None


def _made(make: Callable[..., pa.DataType], parts: list[pa.DataType | None]) -> pa.DataType | None:
    return None if None in parts else make(*parts)


def _fitted_struct(given: pa.DataType, wanted: UserType) -> pa.DataType | None:
    known = {field.name.upper(): field for field in given}
    fields = []
    for field, part in zip(wanted.type, wanted.parts, strict=True):
        found = known.get(field.name)
        type_ = None if found is None else fitted(found.type, part)
        if found is None or type_ is None:
            return None
        fields.append((found.name, type_))
    return pa.struct(fields)
