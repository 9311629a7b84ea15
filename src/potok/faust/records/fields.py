"""The fields of a record class: as references to group by, and as readers of their values from plain data."""

from __future__ import annotations

import datetime as dt
import enum
import types
import typing
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any, Self
from uuid import UUID

from potok.errors import PotokError, SchemaError

Convert = Callable[[Any], Any]
"""Converts a JSON value to that of the field; raises ValueError for a value that does not fit."""

Coercions = Mapping[type | tuple[type, ...], Convert]

NO_COERCIONS: Coercions = MappingProxyType({})


LATEST_S = 253_402_300_800
"""The year 10000."""


class ValidationError(SchemaError):
    """A value that a field cannot have."""

    def __init__(self, model: type, reasons: dict[str, str]) -> None:
        message = "; ".join(f'field "{name}": {why}' if name else why for name, why in reasons.items())
        super().__init__(
            f"not a valid {model.__name__}: {message}", hint="send values that match the annotations of the record"
        )
        self.reasons = reasons


class FieldDescriptor:
    """The type of `Order.user_id`: a field to group by. On an instance, the attribute is the value itself.

    As the default of an annotation it configures the field: whether it is `required`, what its
    `default` is, whether it is omitted when a record is written (`exclude`), and under which names it is read and
    written. A subclass defines the valid values, by `prepare_value` and `validate`.

    >>> class Choice(FieldDescriptor):
    ...     def __init__(self, choices, **options):
    ...         super().__init__(choices=choices, **options)
    ...     def validate(self, value):
    ...         if value not in self.options["choices"]:
    ...             yield self.validation_error("is none of the choices")
    >>> class Order(Record, validation=True):
    ...     state: str = Choice(["new", "paid"])
    """

    def __init__(
        self,
        *,
        field: str = "",
        type: Any = Any,
        model: type = object,
        required: bool = True,
        default: Any = None,
        coerce: bool | None = None,
        exclude: bool = False,
        input_name: str = "",
        output_name: str = "",
        date_parser: Callable[[Any], dt.datetime] | None = None,
        **options: Any,
    ) -> None:
        self.field, self.type, self.model = field, type, model
        self.required, self.default = required and default is None, default
        self.coerce, self.exclude, self.date_parser, self.options = coerce, exclude, date_parser, options
        self.input_name, self.output_name = input_name, output_name
        for name, value in options.items():
            setattr(self, name, value)

    def of(self, field: str, model: type, type: Any) -> Self:
        """Return the descriptor of a field of a class."""
        made = copy(self)
        made.field, made.model, made.type = field, model, type
        return made

    def __get__(self, instance: object, owner: type) -> FieldDescriptor:
        # While a class is created, the defaults of its fields are looked up, and a field of its parent is not a
        # default.
        if instance is None and "__record_fields__" in vars(owner):
            return self
        raise AttributeError(self.field)

    def __repr__(self) -> str:
        return f"{self.model.__name__}.{self.field}"

    @property
    def ident(self) -> str:
        return f"{self.model.__name__}.{self.field}"

    def getattr(self, record: Any) -> Any:
        """Return the value of this field of a record, or of a dict."""
        return record[self.field] if isinstance(record, dict) else getattr(record, self.field)

    def prepare_value(self, value: Any, *, coerce: bool | None = None) -> Any:
        """Convert a value that was read."""
        return value

    to_python = prepare_value

    def validate(self, value: Any) -> Iterable[ValidationError]:
        """Yield the errors of a value."""
        return ()

    def validate_all(self, value: Any) -> list[ValidationError]:
        return list(self.validate(value))

    def validation_error(self, reason: str) -> ValidationError:
        return ValidationError(self.model, {self.field: reason})

    def wrong(self, value: Any) -> str:
        """Return the errors of a value as one text."""
        return "; ".join(why for error in self.validate_all(value) for why in error.reasons.values())


def converter(annotation: Any, *, coerce: bool = False, coercions: Coercions = NO_COERCIONS) -> Convert:
    """Return the reader of a field of this type; `coercions` are functions for some types that replace the
    built-in ones.
    """
    if isinstance(annotation, type) and (own := _own(annotation, coercions)) is not None:
        return own
    if isinstance(annotation, typing.NewType):
        return converter(annotation.__supertype__, coerce=coerce, coercions=coercions)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return converter(arguments[0], coerce=coerce, coercions=coercions)
    if origin in (typing.Union, types.UnionType):
        choices = [choice for choice in arguments if choice is not types.NoneType]
        return _union([converter(choice, coerce=coerce, coercions=coercions) for choice in choices])
    if origin is typing.Literal:
        return _literal(arguments)
    if origin is tuple and len(arguments) > 1 and arguments[1] is not Ellipsis:
        return _tuple_converter([converter(each, coerce=coerce, coercions=coercions) for each in arguments])
    if origin in _COLLECTIONS and arguments:
        return _items(_COLLECTIONS[origin], converter(arguments[0], coerce=coerce, coercions=coercions))
    if origin in _MAPPINGS and len(arguments) == 2:
        return _values(converter(arguments[1], coerce=coerce, coercions=coercions))
    if isinstance(annotation, type) and hasattr(annotation, "from_data"):
        annotation.prepare()  # type: ignore[attr-defined]
        return lambda value: value if isinstance(value, annotation) else annotation.from_data(value)
    kind = origin or annotation
    if coerce and kind in (int, float, str):
        return lambda value: _coerced(kind, value)
    if kind in _READERS:
        return _READERS[kind]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind
    return _kind(kind) if isinstance(kind, type) and kind is not object else _any


_COLLECTIONS: dict[Any, Callable[[Any], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    tuple: tuple,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Collection: list,
    abc.Iterable: list,
    abc.Set: set,
    abc.MutableSet: set,
}
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)


def _own(kind: type, coercions: Coercions) -> Convert | None:
    for kinds, read in coercions.items():
        if kind is kinds or (isinstance(kinds, tuple) and kind in kinds):
            return read
    return None


def _any(value: Any) -> Any:
    return value


def _kind(kind: type) -> Convert:
    def check(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        raise ValueError(f"{value!r} is not {'an' if kind.__name__[0] in 'aeiou' else 'a'} {kind.__name__}"[:200])

    return check


def _number(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    raise ValueError(f"{value!r} is not a number"[:200])


def _integer(value: Any) -> Any:
    if type(value) is int:
        return value
    raise ValueError(f"{value!r} is not a whole number"[:200])


def _instant(value: Any) -> Any:
    """Read ISO 8601 text, in UTC unless it names a zone, or seconds since 1970. A number that would be beyond the
    year 9999 in seconds is milliseconds.
    """
    if isinstance(value, str):
        found = dt.datetime.fromisoformat(value)
        return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
    if type(value) in (int, float):
        try:
            return dt.datetime.fromtimestamp(value if abs(value) < LATEST_S else value / 1000, dt.UTC)
        except (OverflowError, OSError, ValueError) as error:
            raise ValueError(f"{value!r} is not a time since 1970"[:200]) from error
    return _kind(dt.datetime)(value)


def _date(value: Any) -> Any:
    return dt.date.fromisoformat(value) if isinstance(value, str) else _kind(dt.date)(value)


def _decimal(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, str | int | float):
        try:
            return Decimal(str(value))
        except InvalidOperation as error:
            raise ValueError(f"{value!r} is not a decimal"[:200]) from error
    raise ValueError(f"{value!r} is not a decimal"[:200])


def _time(value: Any) -> Any:
    return dt.time.fromisoformat(value) if isinstance(value, str) else _kind(dt.time)(value)


def _span(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return dt.timedelta(seconds=value)
    return _kind(dt.timedelta)(value)


def _uuid(value: Any) -> Any:
    return UUID(value) if isinstance(value, str) else _kind(UUID)(value)


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else _kind(bytes)(value)


_READERS: dict[Any, Convert] = {
    Any: _any,
    float: _number,
    int: _integer,
    bytes: _bytes,
    Decimal: _decimal,
    dt.datetime: _instant,
    dt.date: _date,
    dt.time: _time,
    dt.timedelta: _span,
    UUID: _uuid,
}


def _coerced(kind: Any, value: Any) -> Any:
    try:
        return kind(value)
    except TypeError as error:
        raise ValueError(
            f"{value!r} is not {'an' if kind.__name__[0] in 'aeiou' else 'a'} {kind.__name__}"[:200]
        ) from error


def _union(choices: list[Convert]) -> Convert:
    def read(value: Any) -> Any:
        if value is None:
            return None
        for convert in choices[:-1]:
            try:
                return convert(value)
            except (ValueError, TypeError, PotokError):
                continue
        return choices[-1](value)

    return read


def _literal(choices: tuple[Any, ...]) -> Convert:
    def read(value: Any) -> Any:
        if value in choices:
            return value
        raise ValueError(f"{value!r} is not one of {', '.join(map(repr, choices))}"[:200])

    return read


def _tuple_converter(converts: list[Convert]) -> Convert:
    def read(value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) != len(converts):
            raise ValueError(f"{value!r} does not have {len(converts)} items"[:200])
        return tuple(convert(item) for convert, item in zip(converts, value, strict=True))

    return read


def _items(kind: Callable[[Any], Any], convert: Convert) -> Convert:
    def read(value: Any) -> Any:
        if not isinstance(value, list | tuple | set | frozenset):
            raise ValueError(f"{value!r} is not a list"[:200])
        return kind(map(convert, value))

    return read


def _values(convert: Convert) -> Convert:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is not a map"[:200])
        return {key: convert(item) for key, item in value.items()}

    return read
