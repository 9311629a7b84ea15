"""A frame: the records of one append to one partition, as bytes.

```
header   magic, kind, flags, count, body length, body crc, base offset, ingested, min and max timestamp, header crc
body     kind ARROW: an Arrow IPC record batch; kind ROWS: see row_frame.py; padded to 8 bytes
         kind COMPACTED: an Arrow IPC record batch that carries the offset and the ingestion time of each record
```

What is known only at the commit (base offset, ingestion time) is only in the header, which has a checksum of
its own, so that a frame staged by a task is published without touching its body.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from potok.checksum import crc32

MAGIC = 0x316B7450
HEADER = struct.Struct("<IBBHIIIqqqqI")
HEADER_SIZE = HEADER.size
CHECKED = HEADER_SIZE - 4

ARROW = 1
ROWS = 2
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
