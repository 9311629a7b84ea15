"""Instances of the user's classes as data: JSON in records, plain Python in state."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import msgspec.inspect
import orjson

from potok.errors import Location, TopologyError

_KEPT = (bytes, datetime, date, time, timedelta, Decimal, UUID)
"""What state holds besides numbers, text, lists and dicts."""

_CACHE = "__msgspec_cache__"


class _Wire(msgspec.Struct):
    command: str
    data: msgspec.Raw = msgspec.Raw(b"{}")


class BadData(ValueError):
    """Data that does not fit its class; the text names the field."""


class Json:
    """The instances of one class as JSON."""

    def __init__(self, cls: type) -> None:
        self.encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(cls).decode
        _forget(cls)

    def decode(self, data: bytes) -> Any:
        try:
            return self._decode(data)
        except msgspec.MsgspecError as error:
            raise BadData(str(error)) from error


class MaskedJson:
    """The instances of an event class whose personal fields may be None, whatever type they have."""

    def __init__(self, cls: type, personal: Iterable[str]) -> None:
        self._cls, self._personal = cls, dict.fromkeys(personal)
        hints = typing.get_type_hints(cls, include_extras=True)
        fields: list[tuple[str, Any, Any]] = []
        for each in dataclasses.fields(cls):
            hint = hints[each.name]
            if each.name in self._personal:
                fields.append((each.name, typing.Optional[hint], dataclasses.field(default=None)))  # noqa: UP045
            elif each.default_factory is not dataclasses.MISSING:
                fields.append((each.name, hint, dataclasses.field(default_factory=each.default_factory)))
            else:
                fields.append((each.name, hint, dataclasses.field(default=each.default)))
        self._json = Json(dataclasses.make_dataclass(cls.__name__, fields, kw_only=True))

    def decode(self, data: bytes) -> Any:
        """Return the instance as it is in the data."""
        found = vars(self._json.decode(data))
        made: Any = object.__new__(self._cls)
        for name, item in found.items():
            object.__setattr__(made, name, item)  # the class may be frozen
        if hasattr(made, "__post_init__"):
            made.__post_init__()
        return made

    def without_personal(self, data: bytes) -> bytes:
        """Return the data with None in the personal fields."""
        return orjson.dumps({**orjson.loads(data), **self._personal})


class Commands:
    """The envelope of commands."""

    def __init__(self) -> None:
        self._decode: Callable[[bytes], _Wire] = msgspec.json.Decoder(_Wire).decode

    def read(self, value: bytes | None) -> tuple[str, bytes]:
        """Return the name of a command, and its data as JSON."""
        try:
            found = self._decode(value or b"")
        except msgspec.MsgspecError as error:
            text = f'the value is not a command, {{"command": "...", "data": {{...}}}}: {error}'
            raise BadData(text) from error
        return found.command, bytes(found.data)


class Rows:
    """The instances of one class as state holds them: a dict of numbers, text, dates, lists and dicts."""

    def __init__(self, cls: type) -> None:
        self._cls, self._encode = cls, msgspec.msgpack.Encoder().encode
        self._decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(cls).decode
        _forget(cls)

    def instance(self, data: dict[str, Any]) -> Any:
        """Return the instance with these fields; raise BadData if they do not fit."""
        try:
            return self._decode(self._encode(data))
        except msgspec.MsgspecError as error:
            raise BadData(f"the state does not fit {self._cls.__name__}: {error}") from error


def to_data(instance: Any) -> dict[str, Any]:
    """Return the fields of an instance as state holds them."""
    return msgspec.to_builtins(instance, builtin_types=_KEPT)  # type: ignore[no-any-return]


def to_json(instance: Any) -> dict[str, Any]:
    """Return the fields of an instance as JSON holds them."""
    return msgspec.to_builtins(instance)  # type: ignore[no-any-return]


def json_schemas(classes: Sequence[type], references: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the JSON Schema of each class, and the schemas that they refer to by name, as `references` says."""
    schemas, components = msgspec.json.schema_components(classes, ref_template=references)
    for cls in classes:
        _forget(cls)
    return list(schemas), dict(components)


def _forget(cls: type) -> None:
    """Remove what decoders leave in classes: it cannot be sent to Spark's workers, as the classes of a script are."""
    for each in _classes(msgspec.inspect.type_info(cls)):
        if _CACHE in vars(each):
            delattr(each, _CACHE)


def _classes(part: Any) -> Iterator[type]:
    """Yield the classes of a described type, and of all types in it."""
    return (cls for one in _parts(part) if isinstance(cls := getattr(one, "cls", None), type))


def _parts(part: Any) -> Iterator[Any]:
    """Yield a described type, its fields, and all types in it."""
    pending, seen = [part], set[int]()
    while pending:
        one = pending.pop()
        if isinstance(one, list | tuple):
            pending += one
        elif isinstance(one, msgspec.inspect.Type | msgspec.inspect.Field) and id(one) not in seen:
            seen.add(id(one))
            pending += [getattr(one, name) for name in one.__struct_fields__]
            yield one


def check_data(cls: type, what: str, at: Location | None) -> None:
    """Check that a class is made of types that can be written and read back."""
    hint = "use numbers, text, dates, Decimal, UUID, bytes, enums, dataclasses, and lists and dicts of them"
    try:
        Json(cls)
        unknown = next((one for one in _parts(msgspec.inspect.type_info(cls)) if _is_unknown(one)), None)
        if unknown is not None:
            text = f"{what} cannot be stored: {unknown.cls.__name__} is not data"
            raise TopologyError(text, hint=hint, at=at)
    except TypeError as error:
        raise TopologyError(f"{what} cannot be stored: {str(error).splitlines()[0]}", hint=hint, at=at) from error
    except NameError as error:
        hint = "declare the class before this one, at the top of a module"
        raise TopologyError(f"{what} has a field of an unknown type: {error}", hint=hint, at=at) from error


def _is_unknown(part: Any) -> bool:
    return isinstance(part, msgspec.inspect.CustomType)
