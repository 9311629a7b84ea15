"""Codecs by name, as in Faust: how the values of a topic are serialized; `|` chains several."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson

from potok.errors import PotokError, SchemaError
from potok.faust.records.values import JSON, Encode, Revive, key_bytes, value_encoder
from potok.operators.agents.context import Unfit
from potok.operators.core.call import describe_error
from potok.records.formats.registry import format_named

_PICKLE = "unpickling bytes of a topic can run code; use json, avro or protobuf, or a codec of your own"


class NoCodec(SchemaError):
    """A name without a codec."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f'there is no codec "{name}"', hint=hint)


class Codec:
    """Serializes values. Implement `_dumps` and `_loads` in a custom codec.

    >>> class Upper(Codec):
    ...     def _dumps(self, value): return value.upper().encode()
    ...     def _loads(self, data): return data.decode().lower()
    >>> register("upper", Upper())
    >>> app.topic("names", value_serializer="upper")
    """

    children: ClassVar[tuple[Codec, ...]] = ()

    def _dumps(self, value: Any) -> bytes:
        raise NotImplementedError

    def _loads(self, data: bytes) -> Any:
        raise NotImplementedError

    @property
    def nodes(self) -> tuple[Codec, ...]:
        return (self,)

    def dumps(self, value: Any) -> bytes:
        for node in self.nodes:
            value = node._dumps(value)
        return value  # type: ignore[no-any-return]

    def loads(self, data: bytes) -> Any:
        value: Any = data
        for node in reversed(self.nodes):
            value = node._loads(value)
        return value

    def __or__(self, other: Codec) -> Codec:
        return Chain((*self.nodes, *other.nodes))

    def __repr__(self) -> str:
        return " | ".join(type(node).__name__ for node in self.nodes)


class Chain(Codec):
    """One codec after the other."""

    def __init__(self, nodes: tuple[Codec, ...]) -> None:
        self._nodes = nodes

    @property
    def nodes(self) -> tuple[Codec, ...]:
        return self._nodes


class Json(Codec):
    """JSON."""

    def _dumps(self, value: Any) -> bytes:
        return value_encoder(JSON, None)(value) or b"null"

    def _loads(self, data: bytes) -> Any:
        return orjson.loads(data)


class Raw(Codec):
    """Bytes, unchanged."""

    def _dumps(self, value: Any) -> bytes:
        return value if isinstance(value, bytes) else str(value).encode()

    def _loads(self, data: bytes) -> Any:
        return data


class Binary(Codec):
    """Bytes as base64 text."""

    def _dumps(self, value: Any) -> bytes:
        return base64.b64encode(value if isinstance(value, bytes) else str(value).encode())

    def _loads(self, data: bytes) -> Any:
        return base64.b64decode(data)


_known: dict[str, Codec] = {"json": Json(), "raw": Raw(), "binary": Binary()}
_OURS = frozenset({"json", "raw"})
"""Codecs that are also formats, and faster as such."""


def register(name: str, codec: Codec) -> None:
    """Register a codec under a name, for topics and record classes."""
    _known[name] = codec


def get_codec(given: str | Codec) -> Codec:
    """Return a codec by its name, or several with `|` between them."""
    if isinstance(given, Codec):
        return given
    parts = [_named(name.strip()) for name in given.split("|")]
    return parts[0] if len(parts) == 1 else Chain(tuple(node for part in parts for node in part.nodes))


def _named(name: str) -> Codec:
    if "pickle" in name:
        raise NoCodec(name, _PICKLE)
    if name not in _known:
        raise NoCodec(
            name, f'register("{name}", codec) with potok.faust.records.codecs; there are: {", ".join(_known)}'
        )
    return _known[name]


def dumps(codec: str | Codec, value: Any) -> bytes:
    return get_codec(codec).dumps(value)


def loads(codec: str | Codec, data: bytes) -> Any:
    return get_codec(codec).loads(data)


def own_codec(given: Any) -> Codec | None:
    """Return the codec of a topic, if it is not one of Potok's formats."""
    if isinstance(given, Codec):
        return given
    if not given or given in _OURS:
        return None
    if given in _known or "|" in given or "pickle" in given:
        return get_codec(given)
    try:
        format_named(given)
    except SchemaError:
        return get_codec(given)
    return None


def encoder_of(serializer: str | Codec, value_type: Any) -> Encode:
    """Return the function that serializes a value."""
    codec = own_codec(serializer)
    if codec is None:
        return value_encoder(str(serializer), value_type)
    plain = Json()
    first = codec.nodes[0]

    def encode(value: Any) -> bytes | None:
        if value is None:
            return None
        # A custom codec gets plain data, as in Faust.
        data = value if isinstance(value, bytes) or isinstance(first, Json) else plain.loads(plain.dumps(value))
        return codec.dumps(data)

    return encode


class ReviveBy:
    """Converts the bytes of a topic to what agents see, by a codec."""

    def __init__(self, codec: Codec, value_type: Any) -> None:
        self._codec, self._revive = codec, Revive(value_type)

    def __eq__(self, other: object) -> bool:
        return type(other) is ReviveBy and other._codec is self._codec and other._revive == self._revive

    def __hash__(self) -> int:
        return hash(self._revive)

    def several(self, column: Any, count: int) -> list[list[Any]]:
        read = [self._read(item) for item in (column if isinstance(column, list) else column.to_pylist())]
        good = [item for item in read if type(item) is not Unfit]
        made = [iter(each) for each in self._revive.several(good, count)]
        return [[item if type(item) is Unfit else next(each) for item in read] for each in made]

    def _read(self, data: Any) -> Any:
        if data is None:
            return None
        try:
            return self._codec.loads(data)
        except PotokError as error:
            return Unfit(error.message)
        except Exception as error:  # noqa: BLE001 - a codec of a program's own may raise anything
            return Unfit(describe_error(error))


@dataclass(frozen=True, slots=True)
class Schema:
    """Types and formats; None means not given."""

    key_type: Any = None
    value_type: Any = None
    key_serializer: Any = None
    value_serializer: Any = None
    allow_empty: bool | None = None

    def options(self) -> dict[str, Any]:
        """Return the options of a topic."""
        options = {
            "key_type": self.key_type,
            "value_type": self.value_type,
            "key_serializer": self.key_serializer,
            "value_serializer": self.value_serializer,
        }
        return {name: value for name, value in options.items() if value is not None}

    def dumps_key(self, app: Any, key: Any, **_: Any) -> bytes | None:
        return key_bytes(key)

    def dumps_value(self, app: Any, value: Any, **_: Any) -> bytes | None:
        return encoder_of(self.value_serializer or "json", self.value_type)(value)

    def loads_value(self, app: Any, data: bytes, **_: Any) -> Any:
        value = get_codec(self.value_serializer or "json").loads(data)
        return value if self.value_type is None else self.value_type.from_data(value)
