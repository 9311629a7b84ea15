"""Schemas from Python types: dataclasses, records, TypedDicts and plain annotations."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime as dt
import types
import typing
from decimal import Decimal
from typing import Any

import pyarrow as pa

from potok.errors import SchemaError
from potok.records.conversion.convert import Reading
from potok.records.declared_class import is_plain
from potok.records.schemas.arrow_types import schema_of_arrow
from potok.records.schemas.column_types import DECIMAL, TIME, TIMESTAMP
from potok.records.schemas.defaults import checked_default
from potok.records.schemas.personal import split_personal
from potok.records.schemas.schema import NO_DEFAULT, Field, Schema

_SCALARS: dict[object, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    Decimal: DECIMAL,
    dt.datetime: TIMESTAMP,
    dt.date: pa.date32(),
    dt.time: TIME,
}
_LISTS = {list, set, frozenset, tuple, collections.abc.Sequence, collections.abc.MutableSequence}
_MAPS = {dict, collections.abc.Mapping, collections.abc.MutableMapping}
_UNTYPED = _LISTS | _MAPS | {Any, object, typing.List, typing.Dict}  # noqa: UP006 - the old spellings, unparametrised

# A class that was pickled by value and loaded in its own process has a copy of `MISSING` in its fields.
NotGiven = type(dataclasses.MISSING)


def schema_of_annotation(declared: object) -> Schema:
    """Return the schema of a Python type; `T | None` at the top level means `T`, since any value may be null."""
    return _schema(_split_optional(declared)[0], "the value", ())


def leaves_open(declared: Any) -> bool:
    """Whether a type, or one inside its lists and dicts, is not a single type: `dict`, `list[Any]`, `int | str`."""
    annotation = _unwrap(_split_optional(declared)[0])
    if isinstance(annotation, collections.abc.Hashable) and annotation in _UNTYPED:
        return True
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return True
    return origin in _LISTS | _MAPS and any(map(leaves_open, arguments))


def _schema(annotation: Any, subject: str, above: tuple[object, ...]) -> Schema:
    annotation = _unwrap(annotation)
    if isinstance(annotation, Schema):
        return annotation
    if isinstance(annotation, pa.DataType):
        return schema_of_arrow(annotation)
    if isinstance(annotation, type) and annotation in _SCALARS:
        return Schema.scalar(_SCALARS[annotation])
    if dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation):
        return _struct(annotation, above)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _LISTS and _one_item(origin, arguments):
        item, optional = _split_optional(arguments[0])
        return Schema.list_of(_schema(item, f"an item of {subject}", above), nullable=optional)
    if origin in _MAPS and arguments:
        item, optional = _split_optional(arguments[1])
        key = _schema(arguments[0], f"a key of {subject}", above)
        return Schema.map_of(key, _schema(item, f"an item of {subject}", above), nullable=optional)
    raise SchemaError(f"{subject} cannot be of type {_spell(annotation)}", hint=_hint(annotation))


def _one_item(origin: object, arguments: tuple[object, ...]) -> bool:
    return len(arguments) == 1 or (origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis)


def _unwrap(annotation: Any) -> Any:
    """Return the type inside NewType, Literal and Annotated; an Arrow type in Annotated selects the exact type."""
    if isinstance(annotation, typing.NewType):
        return _unwrap(annotation.__supertype__)
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        exact = [extra for extra in annotation.__metadata__ if isinstance(extra, pa.DataType | Schema)]
        return exact[0] if exact else _unwrap(annotation.__origin__)
    if origin in (typing.Required, typing.NotRequired, typing.Final, typing.ClassVar):
        return _unwrap(typing.get_args(annotation)[0])
    if origin is typing.Literal:
        kinds = {type(choice) for choice in typing.get_args(annotation)}
        return kinds.pop() if len(kinds) == 1 else annotation
    return annotation


def _split_optional(annotation: Any) -> tuple[Any, bool]:
    """Return the type without `| None`, and whether that was present."""
    if typing.get_origin(annotation) in (typing.Required, typing.NotRequired):
        return _split_optional(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation, False
    some = [choice for choice in typing.get_args(annotation) if choice is not types.NoneType]
    return (some[0], True) if len(some) == 1 else (annotation, True)


def _struct(model: Any, above: tuple[object, ...]) -> Schema:
    if model in above:
        raise SchemaError(
            f"{model.__name__} contains itself",
            hint="leave the value without a type: nested values of any depth are dynamic",
        )
    try:
        hints = typing.get_type_hints(model, include_extras=True)
    except NameError as error:
        raise SchemaError(
            f"the annotations of {model.__name__} cannot be resolved: {error}",
            hint="define the types that it names at module level",
        ) from error
    missing_allowed = () if dataclasses.is_dataclass(model) else _not_required(model, hints)
    defaults = _defaults(model) if dataclasses.is_dataclass(model) else dict.fromkeys(hints, NO_DEFAULT)
    fields = []
    for name, default in defaults.items():
        bare, subject = split_personal(hints[name])
        declared, optional = _split_optional(bare)
        schema = _schema(declared, f'field "{name}" of {model.__name__}', (*above, model))
        # The data of a person who was forgotten is null.
        nullable = optional or name in missing_allowed or bool(subject)
        # A default of None only says that the field may be missing, which nullable already implies.
        if default is None:
            default, nullable = NO_DEFAULT, True
        if default is not NO_DEFAULT:
            default = checked_default(name, schema, default, Reading.PYTHON)
        fields.append(Field(name, schema, nullable, default, subject))
    of_class: Any = model if dataclasses.is_dataclass(model) and is_plain(model) else None
    return Schema.struct(fields, of_class)


def _not_required(model: Any, hints: dict[str, Any]) -> set[str]:
    """Return the names that a TypedDict may lack. `__optional_keys__` misses a `NotRequired` in string
    annotations.
    """
    marks = {name: typing.get_origin(hint) for name, hint in hints.items()}
    required = {name for name, mark in marks.items() if mark is typing.Required}
    return {name for name, mark in marks.items() if mark is typing.NotRequired} | set(
        model.__optional_keys__
    ) - required


def _defaults(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in dataclasses.fields(model):
        if not field.init:
            continue
        factory: Any = field.default_factory
        if not isinstance(factory, NotGiven):
            found[field.name] = factory()
        else:
            found[field.name] = NO_DEFAULT if isinstance(field.default, NotGiven) else field.default
    return found


def _spell(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) and not typing.get_args(annotation) else str(annotation)


def _hint(annotation: object) -> str:
    if isinstance(annotation, collections.abc.Hashable) and annotation in _UNTYPED:
        return "declare its items, for example list[str] or dict[str, int]; a value without a type is JSON of any shape"
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return "a field has one type, or one type and None"
    return "use str, int, float, bool, bytes, Decimal, date, time, datetime, list[...], dict[str, ...] or a dataclass"
