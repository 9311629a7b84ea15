"""Records that cannot go on: set aside with their bytes, their position, the step and the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson
import pyarrow as pa

from potok.kernels.chunk import NO_LANE, Chunk


class Reason(StrEnum):
    """Why a record became a dead letter."""

    DECODE = "decode"
    TIMESTAMP = "timestamp"
    ERROR = "error"
    LATE = "late"
    NO_KEY = "no key"
    ENCODE = "encode"


@dataclass(frozen=True, slots=True)
class Lane:
    """One partition of one topic in a batch."""

    topic: str
    partition: int


Fetch = Callable[[str, int, int], tuple[bytes | None, bytes | None] | None]
"""Reads key and value of one position again, for records that left their bytes behind at a shuffle; nothing for a
position that is no longer in the log."""


class DeadLetters:
    """Collects the dead letters of one task."""

    def __init__(self, lanes: list[Lane], fetch: Fetch, at_ms: int) -> None:
        self._lanes = lanes
        self._fetch = fetch
        self._at_ms = at_ms
        self._rows: list[dict[str, Any]] = []
        self.reasons: Counter[str] = Counter()
        self.late: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, chunk: Chunk, errors: Mapping[int, str], step: str, reason: Reason) -> None:
        """Set aside the records of a chunk by index, each with what went wrong."""
        self.reasons[reason.value] += len(errors)
        if reason is Reason.LATE:
            self.late[step] += len(errors)
        for row in sorted(errors):
            error = errors[row]
            key, value, lane, offset = self._original(chunk, row)
            headers = [
                ("potok.topic", lane.topic),
                ("potok.partition", str(lane.partition)),
                ("potok.offset", str(offset)),
                ("potok.step", step),
                ("potok.reason", reason.value),
                ("potok.error", error[:2_000]),
            ]
            self._rows.append(
                {
                    "key": key,
                    "value": value,
                    "timestamp": int(chunk.timestamp[row]),
                    "ingested": self._at_ms,
                    "headers": [{"name": name, "value": text.encode("utf-8", "replace")} for name, text in headers],
                }
            )

    def _original(self, chunk: Chunk, row: int) -> tuple[bytes | None, bytes | None, Lane, int]:
        lane_index, offset = int(chunk.lane[row]), int(chunk.offset[row])
        if lane_index == NO_LANE:
            return _bytes(_item(chunk.key, row)), _bytes(_item(chunk.value, row)), Lane("", -1), -1
        lane = self._lanes[lane_index]
        if chunk.raw_value is not None and chunk.raw_key is not None:
            return chunk.raw_key[row].as_py(), chunk.raw_value[row].as_py(), lane, offset
        found = self._fetch(lane.topic, lane.partition, offset)
        if found is None:
            found = _bytes(_item(chunk.key, row)), _bytes(_item(chunk.value, row))
        return *found, lane, offset

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(self._rows, schema)


def _item(column: Any, row: int) -> Any:
    return column[row] if isinstance(column, list) else column[row].as_py()


def _bytes(value: Any) -> bytes | None:
    """A value that exists only inside the query, as readable bytes."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:
        return repr(value).encode("utf-8", "replace")
