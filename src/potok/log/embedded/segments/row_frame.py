"""The body of a frame of a few records: lengths and bytes, one record after another.

An Arrow record batch has a fixed cost of about 300 bytes and several microseconds, which is most of a frame with one
record. This layout halves the space and the time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from potok.records.log_record import Headers, LogRecord

RECORD = struct.Struct("<iiqI")
"""Length of the key (-1: null), of the value (-1: null), timestamp, number of headers."""

_HEADER = struct.Struct("<Ii")
"""Length of the name, and of the value (-1: null)."""


def encode_rows(records: Iterable[LogRecord]) -> bytes:
    parts: list[bytes] = []
    for record in records:
        key, value = record.key, record.value
        parts.append(
            RECORD.pack(
                -1 if key is None else len(key),
                -1 if value is None else len(value),
                record.timestamp_ms,
                len(record.headers),
            )
        )
        if key:
            parts.append(key)
        if value:
            parts.append(value)
        for name, content in record.headers:
            encoded = name.encode()
            parts += (_HEADER.pack(len(encoded), -1 if content is None else len(content)), encoded, content or b"")
    body = b"".join(parts)
    return body + bytes(-len(body) % 8)


class RowColumns:
    """Columns being collected from the bodies of consecutive small frames."""

    __slots__ = ("headers", "ingested", "keys", "timestamps", "values")

    def __init__(self) -> None:
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        self.ingested: list[int] = []
        self.headers: dict[int, Headers] = {}

    def __len__(self) -> int:
        return len(self.timestamps)

    def decode(self, body: bytes, position: int, count: int, ingested_ms: int) -> None:
        """Add the `count` records that start at `position`; the caller has checked the checksum."""
        for _ in range(count):
            key_size, value_size, timestamp, headers = RECORD.unpack_from(body, position)
            position += 20
            if key_size >= 0:
                end = position + key_size
                self.keys.append(body[position:end])
                position = end
            else:
                self.keys.append(None)
            if value_size >= 0:
                end = position + value_size
                self.values.append(body[position:end])
                position = end
            else:
                self.values.append(None)
            if headers:
                position = self._decode_headers(body, position, headers)
            self.timestamps.append(timestamp)
            self.ingested.append(ingested_ms)

    def _decode_headers(self, body: bytes, position: int, count: int) -> int:
        found = []
        for _ in range(count):
            name_size, size = _HEADER.unpack_from(body, position)
            position += _HEADER.size
            name = body[position : position + name_size].decode()
            position += name_size
            end = position + max(size, 0)
            found.append((name, None if size < 0 else bytes(body[position:end])))
            position = end
        self.headers[len(self.timestamps)] = tuple(found)
        return position
