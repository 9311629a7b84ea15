"""Keys of windowed tables, as Kafka Streams writes them: the bytes of the key, and its window as numbers behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from potok.errors import SchemaError
from potok.records.formats.default import default_format
from potok.records.formats.format import Column, Decoded, Encoded, binary_column, format_named
from potok.records.schema import Schema

_BYTES = 8


@dataclass(frozen=True, slots=True)
class WindowedFormat:
    """`key | start` for windows of one size, and `key | end | start` for sessions; times are eight bytes, big-endian.

    Whoever reads the key of a window of one size must know the size: the end is not written, and comes back as null.
    """

    name: str
    session: bool = False

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        inner = _inner(schema)
        errors: dict[int, str] = {}
        keys: list[bytes | None] = []
        times: list[tuple[int, int | None] | None] = []
        for row, data in enumerate(binary_column(values).to_pylist()):
            if data is not None and len(data) < self._tail:
                errors[row] = f"a windowed key has at least {self._tail} bytes, not {len(data)}"
            if data is None or row in errors:
                keys.append(None)
                times.append(None)
            else:
                keys.append(data[: -self._tail])
                times.append(self._window(data[-self._tail :]))
        decoded = format_named(default_format(inner.arrow)).decode(pa.array(keys, pa.binary()), inner)
        found = decoded.column if isinstance(decoded.column, list) else decoded.column.to_pylist()
        rows = [
            None if time is None else {"key": key, "start": time[0], "end": time[1]}
            for key, time in zip(found, times, strict=True)
        ]
        column = rows if schema is None else pa.array(rows, schema.arrow)
        return Decoded(column, {**decoded.errors, **errors})

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        if not isinstance(column, list) and not _is_windowed(column.type):
            hint = "write the key of a windowed table, or another key_format="
            raise SchemaError(f'format "{self.name}" is for the keys of windowed tables, not {column.type}', hint=hint)
        rows = column if isinstance(column, list) else column.to_pylist()
        errors = {
            row: f"{key!r} is not the key of a window"
            for row, key in enumerate(rows)
            if key is not None and not (isinstance(key, dict) and {"key", "start", "end"} <= key.keys())
        }
        good = [None if row in errors else key for row, key in enumerate(rows)]
        return Encoded(pa.array([None if key is None else self._bytes(key) for key in good], pa.binary()), errors)

    @property
    def _tail(self) -> int:
        return 2 * _BYTES if self.session else _BYTES

    def _window(self, tail: bytes) -> tuple[int, int | None]:
        times = [int.from_bytes(tail[i : i + _BYTES], "big", signed=True) for i in range(0, len(tail), _BYTES)]
        return (times[1], times[0]) if self.session else (times[0], None)

    def _bytes(self, key: dict[str, Any]) -> bytes:
        inner = key["key"]
        if isinstance(inner, str):
            head = inner.encode("utf-8", "surrogatepass")
        elif isinstance(inner, bytes):
            head = inner
        else:
            head = format_named("json").encode([inner], None).values[0].as_py() or b""
        times = (key["end"], key["start"]) if self.session else (key["start"],)
        return head + b"".join(int(time).to_bytes(_BYTES, "big", signed=True) for time in times)


def _is_windowed(type_: pa.DataType) -> bool:
    return pa.types.is_struct(type_) and [field.name for field in type_] == ["key", "start", "end"]


def _inner(schema: Schema | None) -> Schema:
    """The type of the key inside; text if nobody says otherwise."""
    if schema is None:
        return Schema.scalar(pa.string())
    if not _is_windowed(schema.arrow):
        hint = 'declare key="key string, start bigint, end bigint"'
        raise SchemaError(f'a windowed key is not "{schema}"', hint=hint)
    found = Schema.of(schema.arrow.field(0).type)
    assert found is not None
    return found


WINDOWED = WindowedFormat("windowed")
SESSION = WindowedFormat("session", session=True)
