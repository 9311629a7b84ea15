"""Keys of windowed tables, as Kafka Streams writes them: the bytes of the key, followed by its window as
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from potok.errors import SchemaError
from potok.records.conversion.convert import spelled
from potok.records.formats.default import default_format
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema

_BYTES = 8
_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class WindowedFormat:
    """`key | start`; times are eight bytes, big-endian.

    A reader of the key must know the size of the windows, `size_ms`: the end is not written, and is null without it.
    `inner` is the format of the key inside, with `&` for `;` between its own options (`inner_option`).
    """

    name: str = "windowed"
    inner: str = ""
    size_ms: str = ""

    session: ClassVar[bool] = False

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        inner = _inner(schema)
        format_ = format_named(self._inner_format or default_format(inner.arrow))
        errors: dict[int, str] = {}
        keys: list[bytes | None] = []
        times: list[tuple[int, int | None] | None] = []
        for row, data in enumerate(binary_column(values).to_pylist()):
            window: tuple[int, int | None] | None = None
            if data is not None and len(data) < self._tail:
                errors[row] = f"a windowed key has at least {self._tail} bytes, not {len(data)}"
            elif data is not None:
                window = self._window(data[-self._tail :])
                if window[1] is not None and window[1] >= _LIMIT:
                    errors[row] = f"a window that starts at {window[0]} and lasts {self.size_ms} ms has no end"
                    window = None
            keys.append(None if data is None or window is None else data[: -self._tail])
            times.append(window)
        decoded = format_.decode(pa.array(keys, pa.binary()), inner)
        found = decoded.column if isinstance(decoded.column, list) else decoded.column.to_pylist()
        rows = [
            None if time is None or row in decoded.errors else {"key": key, "start": time[0], "end": time[1]}
            for row, (key, time) in enumerate(zip(found, times, strict=True))
        ]
        column = rows if schema is None else pa.array(rows, schema.arrow)
        return Decoded(column, {**decoded.errors, **errors})

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        if not isinstance(column, list) and not _is_windowed(column.type):
            hint = "write the key of a windowed table, or another key_format="
            raise SchemaError(f'format "{self.name}" is for the keys of windowed tables, not {column.type}', hint=hint)
        rows = column if isinstance(column, list) else column.to_pylist()
        errors = {
            row: f"{spelled(key, repr)} is not the key of a window"
            for row, key in enumerate(rows)
            if key is not None and not self._is_key(key)
        }
        good = [None if row in errors else key for row, key in enumerate(rows)]
        heads = self._heads(column, good)
        whole = [
            None if key is None or row in heads.errors else (head or b"") + self._times(key)
            for row, (head, key) in enumerate(zip(heads.values.to_pylist(), good, strict=True))
        ]
        return Encoded(pa.array(whole, pa.binary()), {**heads.errors, **errors})

    def _heads(self, column: Column, rows: list[dict[str, Any] | None]) -> Encoded:
        """Return the bytes of the keys themselves."""
        if not self._inner_format:
            return Encoded(pa.array([None if row is None else _head(row["key"]) for row in rows], pa.binary()))
        keys = [None if row is None else row["key"] for row in rows]
        if isinstance(column, list):
            return format_named(self._inner_format).encode(keys, None)
        type_ = column.type.field(0).type
        return format_named(self._inner_format).encode(pa.array(keys, type_), declared_schema(type_))

    @property
    def _inner_format(self) -> str:
        return unquote(self.inner.replace("&", ";"))

    @property
    def _tail(self) -> int:
        return 2 * _BYTES if self.session else _BYTES

    def _window(self, tail: bytes) -> tuple[int, int | None]:
        times = [int.from_bytes(tail[i : i + _BYTES], "big", signed=True) for i in range(0, len(tail), _BYTES)]
        if self.session:
            return times[1], times[0]
        return times[0], times[0] + int(self.size_ms) if self.size_ms else None

    def _written(self, key: dict[str, Any]) -> tuple[Any, ...]:
        return (key["end"], key["start"]) if self.session else (key["start"],)

    def _is_key(self, key: Any) -> bool:
        if not (isinstance(key, dict) and {"key", "start", "end"} <= key.keys()):
            return False
        return all(isinstance(time, int | np.integer) and -_LIMIT <= time < _LIMIT for time in self._written(key))

    def _times(self, key: dict[str, Any]) -> bytes:
        return b"".join(int(time).to_bytes(_BYTES, "big", signed=True) for time in self._written(key))


def inner_option(format_: str) -> str:
    """Return a format as the option `inner`. The value of one of its options may be any character, also a separator of
    options.
    """
    quoted = format_.replace("%", "%25").replace("&", "%26").replace("=;", "=%3B")
    return quoted.replace(";", "&")


def _head(key: Any) -> bytes:
    if isinstance(key, str):
        return key.encode("utf-8", "surrogatepass")
    if isinstance(key, bytes):
        return key
    return format_named("json").encode([key], None).values[0].as_py() or b""


def _is_windowed(type_: pa.DataType) -> bool:
    return pa.types.is_struct(type_) and [field.name for field in type_] == ["key", "start", "end"]


def _inner(schema: Schema | None) -> Schema:
    """Return the type of the key inside; by default text."""
    if schema is None:
        return Schema.scalar(pa.string())
    if not _is_windowed(schema.arrow):
        hint = 'declare key="key string, start bigint, end bigint"'
        raise SchemaError(f'a windowed key is not "{schema}"', hint=hint)
    found = declared_schema(schema.arrow.field(0).type)
    assert found is not None
    return found


@dataclass(frozen=True, slots=True)
class SessionFormat(WindowedFormat):
    """`key | end | start`: sessions differ in length."""

    name: str = "session"

    session: ClassVar[bool] = True


WINDOWED = WindowedFormat()
SESSION = SessionFormat()
