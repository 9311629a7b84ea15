"""How the fields of a record class are read from plain data: resolved once, and pickled with the class."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterator
from datetime import datetime
from enum import Enum
from operator import itemgetter
from typing import Any

from potok.faust.records.fields import Convert, FieldDescriptor, converter
from potok.records import record as records
from potok.records.schemas.annotations import NotGiven

Plan = list[tuple[str, Convert, Any]]


def plan_of(cls: type[Any]) -> Plan:
    """Return how each field is read, resolved with the first value and pickled with the class."""
    known: Plan | None = vars(cls).get("__plan__")
    if known is None:
        # Stored before it is complete, because a record may contain others of its class.
        known = []
        setattr(cls, "__plan__", known)  # noqa: B010
        try:
            known += _planned(cls)
        except BaseException:
            delattr(cls, "__plan__")
            raise
    return known


def _planned(cls: type[Any]) -> Iterator[tuple[str, Convert, Any]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    for field in dataclasses.fields(cls):
        default = field.default_factory if isinstance(field.default, NotGiven) else _constant(field.default)
        missing = default if not isinstance(default, NotGiven) else _missing
        annotation = hints[field.name]
        optional = type(None) in typing.get_args(annotation) or field.default is None
        read = reader(cls, field.name, annotation)
        yield field.name, read if not optional else _or_none(read), missing if not optional else _optional(missing)


def defaults_of(cls: type[Any]) -> dict[str, Callable[[], Any]]:
    """Return the function that creates the default of each optional field."""
    known: dict[str, Callable[[], Any]] | None = vars(cls).get("__defaults__")
    if known is None:
        known = {name: default for name, _, default in plan_of(cls) if default is not _missing}
        setattr(cls, "__defaults__", known)  # noqa: B010
    return known


def nested_fields(cls: type[Any]) -> dict[str, tuple[frozenset[type], Convert]]:
    """Return the fields whose types contain record classes or enums, with their readers."""
    known: dict[str, tuple[frozenset[type], Convert]] | None = vars(cls).get("__nested__")
    if known is None:
        hints = typing.get_type_hints(cls)
        named = {name: frozenset(tagged_types(hints[name])) for name in getattr(cls, "__record_fields__", ())}
        readers = {name: read for name, read, _ in plan_of(cls)}
        known = {name: (kinds, readers[name]) for name, kinds in named.items() if kinds}
        setattr(cls, "__nested__", known)  # noqa: B010
    return known


def record_types(annotation: Any) -> Iterator[type[Any]]:
    """Return the record classes in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, records.Record) and hasattr(annotation, "from_data"):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from record_types(argument)


def tagged_types(annotation: Any) -> Iterator[type]:
    """Return the record classes and the enums in an annotation."""
    yield from record_types(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from (kind for kind in tagged_types(argument) if issubclass(kind, Enum))


_EXACT = (str, int, float, bool, list, dict)


Quick = Callable[[dict[str, Any]], Any]


def quick_reader(cls: Any) -> Quick | None:
    """Read data in which all fields are present and have exactly the declared types, if these are plain."""
    if "__quick__" in vars(cls):
        known: Quick | None = cls.__quick__
        return known
    hints = typing.get_type_hints(cls)
    names = tuple(field.name for field in dataclasses.fields(cls))
    kinds = tuple(hints[name] for name in names)
    reader: Any = None
    if len(names) > 1 and not cls.__own_way__ and all(kind in _EXACT for kind in kinds):
        fetch, new = itemgetter(*names), cls.__new__

        def reader(data: dict[str, Any]) -> Any:
            try:
                values = fetch(data)
            except KeyError:
                return None
            if tuple(map(type, values)) != kinds:
                return None
            made = new(cls)
            made.__dict__ = dict(zip(names, values, strict=True))
            return made

    cls.__quick__ = reader
    made: Quick | None = reader
    return made


Columns = dict[str, tuple[type | None, Convert]]


def columns_of(cls: Any) -> Columns | None:
    """Return for each field the type whose values are used unchanged, if there is one, and the reader of all
    others. None for a class with its own way to read data.
    """
    if "__columns__" not in vars(cls):
        hints = typing.get_type_hints(cls)
        found = {name: (hints[name] if hints[name] in _EXACT else None, read) for name, read, _ in plan_of(cls)}
        cls.__columns__ = None if cls.__own_way__ or not found else found
    known: Columns | None = cls.__columns__
    return known


def _chooses(annotation: Any, *, instants: bool) -> bool:
    """Whether a type has literal values, which a column would not check, or instants, whose numbers would be read as
    milliseconds, unless that is intended.
    """
    if typing.get_origin(annotation) is typing.Literal or (annotation is datetime and not instants):
        return True
    return any(_chooses(each, instants=instants) for each in typing.get_args(annotation))


def reads_itself(cls: type, *, instants: bool = False) -> bool:
    """Whether a class, or one of its field types, overrides how plain data is read."""
    seen: set[type] = set()
    ahead: list[type] = [cls]
    while ahead:
        if (found := ahead.pop()) in seen:
            continue
        seen.add(found)
        hints = annotations_of(found).values()
        if getattr(found, "__own_way__", False) or any(_chooses(hint, instants=instants) for hint in hints):
            return True
        ahead += [each for hint in hints for each in record_types(hint)]
    return False


def annotations_of(cls: type) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(cls)]
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError:
        # Names that are not defined yet are resolved again when the first value is read.
        hints = {}
    return {name: hints.get(name, Any) for name in names}


def _constant(value: Any) -> Any:
    return lambda: value


def _missing() -> Any:
    raise ValueError("is missing")


def _optional(missing: Any) -> Any:
    return _constant(None) if missing is _missing else missing


def _or_none(read: Convert) -> Convert:
    return lambda value: None if value is None else read(value)


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
    raise TypeError(f"{type(record).__name__} is abstract: create an instance of a subclass")


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
