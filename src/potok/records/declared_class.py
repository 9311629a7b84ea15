"""Instances of declared classes: what a lambda sees of a value whose topic was declared with a dataclass.

The Arrow type of a struct carries the name of its class in the metadata of its first field, so the class follows a
column through every step that keeps the value. A worker learns the class when it unpickles the schema.
"""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import json
from collections.abc import Callable, Mapping
from functools import cache
from operator import itemgetter
from types import FunctionType
from typing import Any

import pyarrow as pa

from potok.records.value import Value, attribute

_KEY = b"potok.class"
_CHOICE = b"potok.classes"
_CLASSES: dict[bytes, type] = {}


def _missing(_: object) -> str:
    return "MISSING"


# By name, so that it stays the one `MISSING`. A class that is pickled by value, as the classes of a program are, would
# get a copy of it, and that looks like the default of every field without one.
copyreg.pickle(type(dataclasses.MISSING), _missing)


def struct_type(fields: list[pa.Field], declared: type | None) -> pa.DataType:
    """Return a struct type that carries its class, if there is one."""
    if declared is None or not fields:
        return pa.struct(fields)
    return pa.struct([fields[0].with_metadata({_KEY: register(declared)}), *fields[1:]])


def choice_type(arrow: pa.DataType, classes: Mapping[str, type]) -> pa.DataType:
    """Return a struct type whose values are instances of one of several classes: the first field says which."""
    names = {value: register(declared).decode() for value, declared in classes.items()}
    return pa.struct([arrow.field(0).with_metadata({_CHOICE: json.dumps(names).encode()}), *list(arrow)[1:]])


def choice_of(arrow: pa.DataType) -> dict[str, type]:
    """Return the classes of a struct type by the value of its first field; empty unless it is a choice."""
    metadata = arrow.field(0).metadata if arrow.num_fields else None
    if metadata is None or _CHOICE not in metadata:
        return {}
    named = json.loads(metadata[_CHOICE])
    return {value: _CLASSES[name.encode()] for value, name in named.items() if name.encode() in _CLASSES}


def register(declared: type) -> bytes:
    """Make a class known to this process, and return the name under which types refer to it."""
    name = f"{declared.__module__}.{declared.__qualname__}".encode()
    # A class defined in a function is a new one with each call of that function.
    while _CLASSES.setdefault(name, declared) is not declared:
        if _same_source(_CLASSES[name], declared):
            _CLASSES[name] = declared
        else:
            name += b"'"
    return name


def register_type(arrow: pa.DataType, declared: type) -> None:
    """Make a class known to this process under the name in its type, which another process gave it."""
    metadata = arrow.field(0).metadata if arrow.num_fields else None
    if metadata is not None and _KEY in metadata:
        _CLASSES[metadata[_KEY]] = declared


def is_plain(declared: Any) -> bool:
    """Whether instances of a dataclass can also be dicts: nothing in it conflicts with that, and no other room
    creates its instances.
    """
    conflicts = type(declared) is not type or issubclass(declared, BaseException) or hasattr(declared, "__getitem__")
    return not conflicts and not getattr(declared, "__own_conversion__", False)


def class_of(arrow: pa.DataType) -> type | None:
    """Return the class of a struct type; None if it has none, or no longer has exactly the fields of that class."""
    if not arrow.num_fields:
        return None
    metadata = arrow.field(0).metadata
    declared = None if metadata is None else _CLASSES.get(metadata.get(_KEY, b""))
    if declared is None or _field_names(declared) != tuple(field.name for field in arrow):
        return None
    return declared


def same_type(one: pa.DataType | None, other: pa.DataType | None) -> bool:
    """Whether two types are equal and, if they are structs, of the same class."""
    if one is None or other is None:
        return one is other
    return bool(one.equals(other, check_metadata=True))


def retyped(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return a column with the classes of an equal type."""
    return column if same_type(column.type, arrow) else column.cast(arrow)


def completes(arrow: pa.DataType) -> bool:
    """Whether a class in a type checks or completes its instances in `__post_init__`."""
    if pa.types.is_struct(arrow):
        return hasattr(class_of(arrow), "__post_init__") or any(completes(field.type) for field in arrow)
    if pa.types.is_list(arrow):
        return completes(arrow.value_type)
    return pa.types.is_map(arrow) and completes(arrow.item_type)


def all_names(declared: Any) -> set[str]:
    """Return all attributes that a class declares, including those that it computes itself."""
    return {name for each in declared.__mro__ for name in vars(each).get("__annotations__", {})}


def constructor_of(arrow: pa.DataType) -> Callable[[Any], Value]:
    """Return what creates the rows of a struct column: a subclass of the declared class, a choice, or `Value`."""
    declared = class_of(arrow)
    if declared is not None:
        return instance_class(declared)
    classes = {value: instance_class(each) for value, each in choice_of(arrow).items() if is_plain(each)}
    if not classes:
        return Value
    first = arrow.field(0).name

    def make(row: Any) -> Value:
        fields = dict(row)
        return classes.get(fields[first], Value)(fields)

    return make


def instance_class(declared: type) -> type[Value]:
    """Return the subclass of a dataclass whose instances are also dicts of their fields.

    >>> @dataclasses.dataclass
    ... class Order:
    ...     amount: float
    ...     def is_large(self) -> bool:
    ...         return self.amount > 100
    >>> v = instance_class(Order)({"amount": 120.0})
    >>> isinstance(v, Order), v.is_large(), v.amount, v["amount"], {**v}
    (True, True, 120.0, 120.0, {'amount': 120.0})
    """
    return _instance_class(declared)


@cache
def _instance_class(declared: Any) -> type[Value]:
    names = _field_names(declared)
    members: dict[str, Any] = {
        "__slots__": (),
        "__module__": declared.__module__,
        "__qualname__": declared.__qualname__,
        "__doc__": declared.__doc__,
        "__init__": _initializer(declared),
        "__reduce__": lambda self: (_rebuild, (declared, dict(self))),
        "__copy__": lambda self: _rebuild(declared, dict(self)),
        "__deepcopy__": lambda self, memo: _rebuild(declared, copy.deepcopy(dict(self), memo)),
        "__eq__": _equality(declared, names),
        "__ne__": object.__ne__,
        "__bool__": _truth(declared),
        "__getattr__": _missing_attribute(declared),
    }
    if "__hash__" not in vars(declared) or declared.__hash__ is None:
        members["__hash__"] = None
    members |= {name: property(itemgetter(name), _setter(name), doc=f'The field "{name}".') for name in names}
    if "__setattr__" not in _own_members(declared):
        members["__setattr__"] = object.__setattr__
    if not _has_slots(declared):
        return type(declared.__name__, (declared, Value), members)
    # Slots and a dict cannot share one object, so the class is copied, and `isinstance` asks `__class__`.
    del members["__slots__"]
    members["__class__"] = property(lambda _: declared)
    return type(declared.__name__, (Value,), {**_own_members(declared), **members})


def _missing_attribute(declared: Any) -> Callable[[Any, str], Any]:
    """Return `__getattr__`: an error inside a property is reported unchanged, anything else as a missing field."""
    own: Any = getattr(declared, "__getattr__", None)

    def __getattr__(self: Any, name: str) -> Any:  # noqa: N807
        if hasattr(type(self), name):
            return object.__getattribute__(self, name)
        return own(self, name) if own is not None else attribute(self, name)

    return __getattr__


def _initializer(declared: Any) -> Callable[..., None]:
    """Return `__init__`: fill the dict, then let the class complete the instance."""
    if not hasattr(declared, "__post_init__"):
        return dict.__init__

    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807 - becomes the method of a class
        dict.__init__(self, *args, **named)
        self.__post_init__()

    return __init__


def _equality(declared: Any, names: tuple[str, ...]) -> Callable[[Any, object], bool]:
    if "__eq__" in vars(declared) and not _is_generated(vars(declared)["__eq__"]):
        own: Callable[[Any, object], bool] = declared.__eq__
        return own

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        if isinstance(other, declared) and not isinstance(other, dict):
            return all(dict.__getitem__(self, name) == getattr(other, name) for name in names)
        return dict.__eq__(self, other)

    return __eq__


def _is_generated(method: Any) -> bool:
    """Whether `dataclasses` wrote a method; its code has no file."""
    code = getattr(getattr(method, "__wrapped__", method), "__code__", None)
    return code is None or not code.co_filename or code.co_filename.startswith("<")


def _truth(declared: Any) -> Callable[[Any], bool]:
    own: Any = getattr(declared, "__bool__", None) or getattr(declared, "__len__", None)
    return (lambda self: bool(own(self))) if own is not None else (lambda _: True)


def _setter(name: str) -> Callable[[Any, Any], None]:
    return lambda self, value: dict.__setitem__(self, name, value)


def _own_members(declared: type) -> dict[str, Any]:
    """Return what a class and the classes above it define, without their storage."""
    found: dict[str, Any] = {}
    for each in reversed(declared.__mro__[:-1]):
        slots = vars(each).get("__slots__", ())
        storage = {"__dict__", "__weakref__", "__slots__", *([slots] if isinstance(slots, str) else slots)}
        found |= {name: member for name, member in vars(each).items() if name not in storage}
    return found


def _has_slots(declared: type) -> bool:
    return any(vars(each).get("__slots__") for each in declared.__mro__)


def _field_names(declared: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(declared) if field.init)


def _same_source(one: Any, other: Any) -> bool:
    """Whether two classes are copies of one: a pickled class becomes another object in each process."""
    first, second = ({k: v for k, v in vars(c).items() if isinstance(v, FunctionType)} for c in (one, other))
    return _field_names(one) == _field_names(other) and {name: method.__code__ for name, method in first.items()} == {
        name: method.__code__ for name, method in second.items()
    }


def _rebuild(declared: type, fields: Mapping[str, Any]) -> Value:
    return instance_class(declared)(fields)
