"""A frame: the records of one append to one partition, as bytes.

```
header   magic, kind, flags, count, body length, body crc, base offset, ingested, min and max timestamp, header crc
body     kind ARROW: an Arrow IPC record batch; kind ROWS: lengths and bytes of a few records; padded to 8 bytes
         kind COMPACTED: an Arrow IPC record batch that carries the offset and the ingestion time of each record
```

What is known only at the commit (base offset, ingestion time) is only in the header, which has a checksum of
its own, so that a frame staged by a task is published without touching its body.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from potok.checksum import crc32
from potok.records.log_record import Headers, LogRecord

MAGIC = 0x316B7450
HEADER = struct.Struct("<IBBHIIIqqqqI")
HEADER_SIZE = HEADER.size
CHECKED = HEADER_SIZE - 4

ARROW = 1
ROWS = 2
"""An Arrow record batch has a fixed cost of about 300 bytes and several microseconds, which is most of a frame with one
record. ROWS is the layout of small frames: lengths and bytes, one record after another. It halves space and time."""
COMPACTED = 3
"""The remainder of several frames. `ingested` is when compaction first saw its tombstones, 0 if there are none."""

WITH_HEADERS = 1
"""Flag of an Arrow body that has the column `headers`, which is omitted if no record has headers."""

_UNSEALED = struct.Struct("<IBBHIIIqqqq")


@dataclass(frozen=True, slots=True)
class Frame:
    """The fields of a header, except those known only at the commit."""

    kind: int
    flags: int
    count: int
    body_size: int
    body_crc: int
    min_timestamp: int
    max_timestamp: int

    @property
    def size(self) -> int:
        return HEADER_SIZE + self.body_size

    def header(self, base_offset: int, ingested_ms: int) -> bytes:
        unsealed = _UNSEALED.pack(
            MAGIC,
            self.kind,
            self.flags,
            0,
            self.count,
            self.body_size,
            self.body_crc,
            base_offset,
            ingested_ms,
            self.min_timestamp,
            self.max_timestamp,
        )
        return unsealed + crc32(unsealed).to_bytes(4, "little")


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
