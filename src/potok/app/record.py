"""`Record` as Faust has it: a dataclass whose fields can be pointed at, read from and written to plain data."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar, Self, dataclass_transform

from potok.app.described import both, input_names, instant_by, no_objects, reader, take_fields
from potok.app.fields import NO_COERCIONS, Coercions, Convert, FieldDescriptor, ValidationError
from potok.records import record as records
from potok.records.annotations import NotGiven

__all__ = [
    "NAMESPACE",
    "Record",
    "ValidationError",
    "columns_of",
    "defaults_of",
    "model_named",
    "nested_fields",
    "plain",
    "reads_itself",
]

NAMESPACE = "__faust"
"""Where plain data says of which class it is, if that does not follow from its place."""


@dataclass_transform(field_specifiers=(dataclasses.field,))
class Record(records.Record):
    """A base class for what topics and tables hold. `Order.user_id` is a field; `order.user_id` is its value.

    >>> class Order(Record):
    ...     order_id: str
    ...     amount: float = 0.0
    >>> Order.from_data({"order_id": "o-1", "amount": 12}).amount
    12.0

    Class keywords: `namespace=` names the class in plain data, `coerce=` turns text into numbers and numbers into
    text, `coercions=` has functions that read some types, `date_parser=` one that reads instants. `validation=` checks
    what is given to `Record(...)` too, and what fields say of themselves; `serializer=` is that of topics with this
    value. `include_metadata=True` writes the namespace into each value, `polymorphic_fields=True` lets that of a
    subclass decide which class a value is of. A class that is `abstract` has no objects. `isodates=` and `decimals=`
    are accepted: dates and decimals are always read.
    """

    __namespace__: ClassVar[str] = ""
    __serializer__: ClassVar[str] = ""
    __coerces__: ClassVar[bool] = False
    __coercions__: ClassVar[Coercions] = NO_COERCIONS
    __validates__: ClassVar[bool] = False
    __given_fields__: ClassVar[dict[str, FieldDescriptor]] = {}
    __own_way__: ClassVar[bool] = False
    """Whether plain data is read in another way than by its columns."""
    __shaped__: ClassVar[bool] = False
    """Whether plain data has other names than those of the fields, or more."""
    __tells_class__: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        cls.__given_fields__ = {**cls.__given_fields__, **take_fields(cls)}
        for name in vars(cls).get("__annotations__", {}):
            if isinstance(default := vars(cls).get(name), list | dict | set):
                # Each record has its own, where a dataclass would refuse.
                setattr(cls, name, dataclasses.field(default_factory=partial(deepcopy, default)))
        cls.__validates__ = options.get("validation", cls.__validates__)
        if options.get("validation"):
            cls.__post_init__ = both(getattr(cls, "__post_init__", None), _validate)  # type: ignore[attr-defined]
        super().__init_subclass__(**options)
        if options.get("abstract"):
            cls.__init__ = no_objects  # type: ignore[assignment, method-assign]
        # Without the module, which has another name when the program is run than when it is imported.
        cls.__namespace__ = options.get("namespace") or cls.__qualname__
        cls.__serializer__ = options.get("serializer") or cls.__serializer__
        cls.__coerces__ = options.get("coerce", cls.__coerces__)
        cls.__coercions__ = {**cls.__coercions__, **(options.get("coercions") or {})}
        if options.get("date_parser"):
            cls.__coercions__ = {**cls.__coercions__, datetime: instant_by(options["date_parser"])}
        cls.__tells_class__ = bool(options.get("include_metadata", cls.__tells_class__))
        told = options.get("polymorphic_fields") or options.get("allow_blessed_key")
        given = cls.__given_fields__
        cls.__own_way__ = bool(cls.__own_way__ or cls.__coerces__ or cls.__coercions__ or told or given)
        cls.__shaped__ = cls.__tells_class__ or any(field.exclude or field.output_name for field in given.values())
        annotations = _annotations(cls)
        for name in annotations:
            setattr(cls, name, given.get(name, FieldDescriptor()).of(name, cls, annotations[name]))
        cls.__record_fields__ = tuple(annotations)  # type: ignore[attr-defined]

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """A record of plain data; raises `ValidationError` if it does not fit. Unknown fields are left out."""
        if isinstance(data, cls):
            return data
        if not isinstance(data, dict):
            raise ValidationError(cls, {"": f"{data!r} is no object"[:200]})
        if NAMESPACE in data and (model := _told_model(cls, data[NAMESPACE])) is not cls:
            return model.from_data({name: value for name, value in data.items() if name != NAMESPACE})  # type: ignore[return-value]
        quick = _quick(cls)
        if quick is not None and (made := quick(data)) is not None:
            return made  # type: ignore[no-any-return]
        found: dict[str, Any] = {}
        reasons: dict[str, str] = {}
        inputs = input_names(cls)
        for name, convert, default in _plan(cls):
            value = data.get(inputs.get(name, name), dataclasses.MISSING)
            try:
                found[name] = default() if value is dataclasses.MISSING else convert(value)
            except (ValueError, TypeError, ValidationError) as error:
                reasons[name] = _said(error)
        if reasons:
            raise ValidationError(cls, reasons)
        made = cls.__new__(cls)
        made.__dict__.update(found)
        return made

    @classmethod
    def prepare(cls) -> None:
        """Work out how values are read, where the names in the annotations mean something."""
        if len(_plan(cls)) == len(dataclasses.fields(cls)):
            # Otherwise that is what somebody further up is doing, of a class that holds others of its kind.
            _quick(cls)
            columns_of(cls)
            nested_fields(cls)

    def asdict(self) -> dict[str, Any]:
        return {name: plain(value) for name, value in vars(self).items()}

    def to_representation(self) -> dict[str, Any]:
        """The fields as they are written, and of which class they are."""
        return {**self.written(), NAMESPACE: {"ns": self.__namespace__}}

    def written(self) -> dict[str, Any]:
        """The fields as they are written: under their names there, without those that are left out."""
        if not self.__shaped__:
            return vars(self)
        given = self.__given_fields__
        kept = [name for name in vars(self) if name not in given or not given[name].exclude]
        names = {name: (given[name].output_name or name) if name in given else name for name in kept}
        told = {NAMESPACE: {"ns": self.__namespace__}} if self.__tells_class__ else {}
        return {**{names[name]: getattr(self, name) for name in kept}, **told}

    def dumps(self, *, serializer: str = "") -> bytes | None:
        """The bytes of this record, as a topic would hold them."""
        from potok.app.codecs import encoder_of  # what writes records knows what they are

        return encoder_of(serializer or self.__serializer__ or "json", type(self))(self)

    @classmethod
    def loads(cls, data: bytes, *, serializer: str = "", default_serializer: str = "") -> Self:
        """A record of such bytes."""
        from potok.app.codecs import get_codec

        return cls.from_data(get_codec(serializer or cls.__serializer__ or default_serializer or "json").loads(data))

    @classmethod
    def make_final(cls) -> None:
        """For those who call it; a class is ready when it is defined."""

    def derive(self, *others: Record, **fields: Any) -> Self:
        """A copy with other values for some fields."""
        given = {name: value for other in others for name, value in vars(other).items()} | fields
        return dataclasses.replace(self, **given)

    def validate(self) -> list[ValidationError]:
        """What is wrong with the values, if anything."""
        try:
            _validate(self)
        except ValidationError as error:
            return [error]
        return []

    def is_valid(self) -> bool:
        return not self.validate()

    def validate_or_raise(self) -> None:
        _validate(self)

    @property
    def validation_errors(self) -> list[ValidationError]:
        return self.validate()


def _chooses(annotation: Any) -> bool:
    """Whether a type names values, which a column would not look at."""
    return typing.get_origin(annotation) is typing.Literal or any(map(_chooses, typing.get_args(annotation)))


def reads_itself(cls: type) -> bool:
    """Whether a class, or one that its fields name, reads plain data in its own way."""
    seen: set[type] = set()
    ahead: list[type] = [cls]
    while ahead:
        if (found := ahead.pop()) in seen:
            continue
        seen.add(found)
        if getattr(found, "__own_way__", False) or any(map(_chooses, _annotations(found).values())):
            return True
        ahead += [each for hint in _annotations(found).values() for each in record_types(hint)]
    return False


def _annotations(cls: type) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(cls)]
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError:
        # Names that are not defined yet; they are looked up again when the first value is read.
        hints = {}
    return {name: hints.get(name, Any) for name in names}


Plan = list[tuple[str, Convert, Any]]


def _plan(cls: type[Record]) -> Plan:
    """How each field is read, worked out with the first value; a class that travels takes it along."""
    known: Plan | None = vars(cls).get("__plan__")
    if known is None:
        # There before it is full, for a record may hold others of its class.
        known = []
        setattr(cls, "__plan__", known)  # noqa: B010
        try:
            known += _planned(cls)
        except BaseException:
            delattr(cls, "__plan__")
            raise
    return known


def _planned(cls: type[Record]) -> Iterator[tuple[str, Convert, Any]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    for field in dataclasses.fields(cls):
        default = field.default_factory if isinstance(field.default, NotGiven) else _constant(field.default)
        missing = default if not isinstance(default, NotGiven) else _missing
        annotation = hints[field.name]
        optional = type(None) in typing.get_args(annotation) or field.default is None
        read = reader(cls, field.name, annotation)
        yield field.name, read if not optional else _or_none(read), missing if not optional else _optional(missing)


def defaults_of(cls: type[Record]) -> dict[str, Callable[[], Any]]:
    """What makes the value of each field that need not be given."""
    known: dict[str, Callable[[], Any]] | None = vars(cls).get("__defaults__")
    if known is None:
        known = {name: default for name, _, default in _plan(cls) if default is not _missing}
        setattr(cls, "__defaults__", known)  # noqa: B010
    return known


def nested_fields(cls: type[Record]) -> dict[str, tuple[frozenset[type], Convert]]:
    """The fields whose types name record classes: which, and how they are read."""
    known: dict[str, tuple[frozenset[type], Convert]] | None = vars(cls).get("__nested__")
    if known is None:
        hints = typing.get_type_hints(cls)
        named = {name: frozenset(record_types(hints[name])) for name in getattr(cls, "__record_fields__", ())}
        readers = {name: read for name, read, _ in _plan(cls)}
        known = {name: (kinds, readers[name]) for name, kinds in named.items() if kinds}
        setattr(cls, "__nested__", known)  # noqa: B010
    return known


def record_types(annotation: Any) -> Iterator[type[Record]]:
    """The record classes that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, Record):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from record_types(argument)


_EXACT = (str, int, float, bool, list, dict)


def _quick(cls: type[Record]) -> Callable[[dict[str, Any]], Any] | None:
    """Reads data whose fields are all there and of exactly the types declared, if these are plain."""
    if "__quick__" in vars(cls):
        return cls.__quick__  # type: ignore[attr-defined, no-any-return]
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

    cls.__quick__ = reader  # type: ignore[attr-defined]
    return reader  # type: ignore[no-any-return]


def columns_of(cls: type[Record]) -> dict[str, tuple[type | None, Convert]] | None:
    """For each field the type whose values are taken as they are, if there is one, and what reads all others. None for
    a class that reads data in its own way."""
    if "__columns__" not in vars(cls):
        hints = typing.get_type_hints(cls)
        own = cls.__own_way__ or cls.from_data.__func__ is not Record.from_data.__func__  # type: ignore[attr-defined]
        found = {name: (hints[name] if hints[name] in _EXACT else None, read) for name, read, _ in _plan(cls)}
        cls.__columns__ = None if own or not found else found  # type: ignore[attr-defined]
    return cls.__columns__  # type: ignore[attr-defined, no-any-return]


def _constant(value: Any) -> Any:
    return lambda: value


def _missing() -> Any:
    raise ValueError("is missing")


def _optional(missing: Any) -> Any:
    return _constant(None) if missing is _missing else missing


def _or_none(read: Convert) -> Convert:
    return lambda value: None if value is None else read(value)


def _validate(record: Record) -> None:
    reasons: dict[str, str] = {}
    for name, convert, _ in _plan(type(record)):
        try:
            made = convert(getattr(record, name))
            given = record.__given_fields__.get(name)
            if given is not None and (wrong := given.of(name, type(record), Any).wrong(made)):
                reasons[name] = wrong
        except (ValueError, TypeError, ValidationError) as error:
            reasons[name] = _said(error)
    if reasons:
        raise ValidationError(type(record), reasons)


def _said(error: Exception) -> str:
    return error.message if isinstance(error, ValidationError) else str(error)


def plain(value: Any) -> Any:
    """A value with records in it as plain data."""
    if isinstance(value, Record):
        return value.asdict()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _told_model(declared: type[Record], note: Any) -> type[Record]:
    """The class that plain data says it is of, if that is one of the declared kind."""
    found = model_named(str(note.get("ns"))) if isinstance(note, dict) else None
    return found if found is not None and issubclass(found, declared) else declared


def model_named(namespace: str) -> type[Record] | None:
    """The record class of a namespace, wherever it was defined; Faust puts the module before it."""
    ahead: list[type[Record]] = [Record]
    while ahead:
        found = ahead.pop()
        if namespace in (found.__namespace__, f"{found.__module__}.{found.__qualname__}"):
            return found
        ahead += found.__subclasses__()
    return None
