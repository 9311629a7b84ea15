"""Classes of records, as Faust has them: dataclasses whose fields can be pointed at and are read from plain data."""

from __future__ import annotations

import contextlib
import dataclasses
from copy import deepcopy
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Self, dataclass_transform

from potok.faust.records.fields import NO_COERCIONS, Coercions, FieldDescriptor, ValidationError
from potok.faust.records.record_plan import (
    annotations_of,
    both,
    columns_of,
    input_names,
    instant_by,
    nested_fields,
    no_objects,
    plan_of,
    quick_reader,
    take_fields,
)
from potok.records import record as records

__all__ = ["NAMESPACE", "Model", "ValidationError", "model_named", "plain"]

NAMESPACE = "__faust"
"""The name of the class in plain data, if it does not follow from the context."""


@dataclass_transform(field_specifiers=(dataclasses.field,))
class Model(records.Record):
    """What every record class is: fields that can be pointed at, read from plain data, compared and validated."""

    __namespace__: ClassVar[str] = ""
    __serializer__: ClassVar[str] = ""
    __coerces__: ClassVar[bool] = False
    __coercions__: ClassVar[Coercions] = NO_COERCIONS
    __validates__: ClassVar[bool] = False
    __given_fields__: ClassVar[dict[str, FieldDescriptor]] = {}
    __own_way__: ClassVar[bool] = False
    """Whether plain data cannot be read by columns."""
    __shaped__: ClassVar[bool] = False
    """Whether plain data has other or additional names."""
    __tells_class__: ClassVar[bool] = False
    __own_conversion__: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        cls.__given_fields__ = {**cls.__given_fields__, **take_fields(cls)}
        for name in vars(cls).get("__annotations__", {}):
            if isinstance(default := vars(cls).get(name), list | dict | set):
                # Each record has its own, where a dataclass would refuse a mutable default.
                setattr(cls, name, dataclasses.field(default_factory=partial(deepcopy, default)))
        cls.__validates__ = options.get("validation", cls.__validates__)
        if options.get("coerce"):
            cls.__post_init__ = both(getattr(cls, "__post_init__", None), _coerce)  # type: ignore[attr-defined]
        if options.get("validation"):
            cls.__post_init__ = both(getattr(cls, "__post_init__", None), _validate)  # type: ignore[attr-defined]
        own = "__hash__" in vars(cls) or "__eq__" in vars(cls)
        super().__init_subclass__(**options)
        if not own:
            # A dataclass with __eq__ has no __hash__.
            cls.__hash__ = Model.__hash__  # type: ignore[method-assign]
        if options.get("abstract"):
            cls.__init__ = no_objects  # type: ignore[assignment, method-assign]
        # Without the module, whose name differs between running and importing the program.
        namespace = options.get("namespace")
        cls.__namespace__ = cls.__qualname__ if namespace is None else namespace
        cls.__serializer__ = options.get("serializer") or cls.__serializer__
        cls.__coerces__ = options.get("coerce", cls.__coerces__)
        cls.__coercions__ = {**cls.__coercions__, **(options.get("coercions") or {})}
        if options.get("date_parser"):
            cls.__coercions__ = {**cls.__coercions__, datetime: instant_by(options["date_parser"])}
        cls.__tells_class__ = bool(options.get("include_metadata", cls.__tells_class__))
        is_polymorphic = options.get("polymorphic_fields") or options.get("allow_blessed_key")
        given = cls.__given_fields__
        is_polymorphic = is_polymorphic or cls.from_data.__func__ is not Model.from_data.__func__  # type: ignore[attr-defined]
        cls.__own_way__ = bool(cls.__own_way__ or cls.__coerces__ or cls.__coercions__ or is_polymorphic or given)
        cls.__shaped__ = cls.__tells_class__ or any(field.exclude or field.output_name for field in given.values())
        annotations = annotations_of(cls)
        for name in annotations:
            setattr(cls, name, given.get(name, FieldDescriptor()).of(name, cls, annotations[name]))
        cls.__record_fields__ = tuple(annotations)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), *self._field_values()))

    def __lt__(self, other: Self) -> bool:
        return self._field_values() < other._field_values() if type(other) is type(self) else NotImplemented

    def __le__(self, other: Self) -> bool:
        return self._field_values() <= other._field_values() if type(other) is type(self) else NotImplemented

    def __gt__(self, other: Self) -> bool:
        return self._field_values() > other._field_values() if type(other) is type(self) else NotImplemented

    def __ge__(self, other: Self) -> bool:
        return self._field_values() >= other._field_values() if type(other) is type(self) else NotImplemented

    def _field_values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Return a record from plain data; raise `ValidationError` if it does not fit. Unknown fields are
        ignored.
        """
        if isinstance(data, cls):
            return data
        if not isinstance(data, dict):
            raise ValidationError(cls, {"": f"{data!r} is not an object"[:200]})
        if NAMESPACE in data and (model := _tagged_model(cls, data[NAMESPACE])) is not cls:
            return model.from_data({name: value for name, value in data.items() if name != NAMESPACE})  # type: ignore[return-value]
        quick = quick_reader(cls)
        if quick is not None and (made := quick(data)) is not None:
            return made  # type: ignore[no-any-return]
        found: dict[str, Any] = {}
        reasons: dict[str, str] = {}
        inputs = input_names(cls)
        for name, convert, default in plan_of(cls):
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
        """Resolve how values are read, where the names in the annotations are defined."""
        if len(plan_of(cls)) == len(dataclasses.fields(cls)):
            # Otherwise a caller is already doing so, for a recursive class.
            quick_reader(cls)
            columns_of(cls)
            nested_fields(cls)

    def asdict(self) -> dict[str, Any]:
        return {name: plain(value) for name, value in vars(self).items()}

    def to_representation(self) -> dict[str, Any]:
        """Return the fields as they are written, with the name of the class."""
        return {**self.written(), NAMESPACE: {"ns": self.__namespace__}}

    def written(self) -> dict[str, Any]:
        """Return the fields as they are written: under their external names, without excluded ones."""
        if not self.__shaped__:
            return vars(self)
        given = self.__given_fields__
        kept = [name for name in vars(self) if name not in given or not given[name].exclude]
        names = {name: (given[name].output_name or name) if name in given else name for name in kept}
        namespace = {NAMESPACE: {"ns": self.__namespace__}} if self.__tells_class__ else {}
        return {**{names[name]: getattr(self, name) for name in kept}, **namespace}

    @classmethod
    def make_final(cls) -> None:
        """Do nothing: a class is ready when it is defined."""

    def derive(self, *others: Model, **fields: Any) -> Self:
        """Return a copy with other values for some fields."""
        given = {name: value for other in others for name, value in vars(other).items()} | fields
        return dataclasses.replace(self, **given)

    def validate(self) -> list[ValidationError]:
        """Return the errors of the values."""
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


def _coerce(record: Model) -> None:
    """Convert the arguments to the annotated types if possible; `validate` reports those that are not. If
    functions of the class read values, their result is used.
    """
    for name, convert, _ in plan_of(type(record)) if not record.__coercions__ else ():
        with contextlib.suppress(ValueError, TypeError, ValidationError):
            record.__dict__[name] = convert(getattr(record, name))


def _validate(record: Model) -> None:
    reasons: dict[str, str] = {}
    for name, convert, _ in plan_of(type(record)):
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
    """Return a value with nested records as plain data."""
    if isinstance(value, Model):
        return value.asdict()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _tagged_model(declared: type[Model], note: Any) -> type[Model]:
    """Return the class that plain data names, if it is one of the declared type."""
    found = model_named(str(note.get("ns")), declared) if isinstance(note, dict) else None
    return found or declared


def model_named(namespace: str, declared: type[Model] | None = None) -> type[Model] | None:
    """Return the record class of a namespace among those of a declared type, wherever it was defined.

    Faust prefixes the module.
    """
    ahead: list[type[Model]] = [declared or Model]
    while ahead:
        found = ahead.pop()
        if namespace in (found.__namespace__, f"{found.__module__}.{found.__qualname__}"):
            return found
        ahead += found.__subclasses__()
    return None
