"""The types of the keys and values of a topic in one object: `app.topic("orders",
schema=Schema(value_type=Order))`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from potok.faust.records.codecs import encoder_of, get_codec
from potok.faust.records.values import key_bytes


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
