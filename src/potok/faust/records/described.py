"""Record classes with field descriptors: how fields are read, and which values are refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from potok.faust.records.fields import Convert, FieldDescriptor, converter


def take_fields(cls: type) -> dict[str, FieldDescriptor]:
    """Return the field descriptors of a class, and replace them by their defaults for the dataclass."""
    found = {name: given for name, given in vars(cls).items() if isinstance(given, FieldDescriptor)}
    for name, given in found.items():
        if given.required:
            delattr(cls, name)
        else:
            setattr(cls, name, given.default)
    return found


def no_objects(record: Any, *_: Any, **__: Any) -> None:
    raise TypeError(f"{type(record).__name__} is abstract: make one of its subclasses")


def both(first: Callable[[Any], None] | None, second: Callable[[Any], None]) -> Callable[[Any], None]:
    """Compose two functions, the first of which is optional."""

    def check(record: Any) -> None:
        if first is not None:
            first(record)
        second(record)

    return check


def instant_by(parse: Convert) -> Convert:
    return lambda value: value if isinstance(value, datetime) else parse(value)


def input_names(cls: Any) -> dict[str, str]:
    given = cls.__given_fields__
    return {name: field.input_name for name, field in given.items() if field.input_name} if given else {}


def reader(cls: Any, name: str, annotation: Any) -> Convert:
    """Return the reader of a field, including its descriptor."""
    given = cls.__given_fields__.get(name)
    coerce = cls.__coerces__ if given is None or given.coerce is None else given.coerce
    coercions = cls.__coercions__
    if given is not None and given.date_parser is not None:
        coercions = {**coercions, datetime: instant_by(given.date_parser)}
    read = converter(annotation, coerce=coerce, coercions=coercions)
    if given is None:
        return read
    checks = cls.__validates__

    def described(value: Any) -> Any:
        made = given.prepare_value(read(value), coerce=coerce)
        if checks and (wrong := given.of(name, cls, annotation).wrong(made)):
            raise ValueError(wrong)
        return made

    return described
