"""Dead letters: records that cannot be processed, with their bytes, position, step and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, position_of


class Reason(StrEnum):
    """Why a record became a dead letter."""

    DECODE = "decode"
    TIMESTAMP = "timestamp"
    ERROR = "error"
    LATE = "late"
    NO_KEY = "no key"
    ENCODE = "encode"
    REFUSED = "refused"


class InputPartition(NamedTuple):
    """One partition of one topic in a batch. A batch may have thousands, which are pickled for its tasks."""

    topic: str
    partition: int


NOWHERE = InputPartition("", -1)
"""The position of a record that is in no topic."""


class Note:
    """The headers that a dead letter has after those of its record; the first of them is always present."""

    TOPIC = "potok.topic"
    PARTITION = "potok.partition"
    OFFSET = "potok.offset"
    STEP = "potok.step"
    REASON = "potok.reason"
    ERROR = "potok.error"
    AT = "potok.at"
    """When the record was set aside: milliseconds since 1970."""
    BYTES = "potok.bytes"
    """Present if key and value are not those of the record: `seen` or `cut`."""
    TIME = "potok.time"
    """The timestamp of the record, if the log would not accept it."""


SEEN = "seen"
"""The record was no longer in the log; key and value are as the step saw them."""

CUT = "cut"
"""The dead letter would have been too large for the log; its record may still be in its topic."""

Headers = list[dict[str, Any]] | None


def split_headers(headers: Headers) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Split headers into those of the record, which may have been a dead letter itself, and the notes."""
    listed = headers or []
    firsts = [at for at, header in enumerate(listed) if header["name"] == Note.TOPIC]
    return (listed[: firsts[-1]], listed[firsts[-1] :]) if firsts else (listed, [])


@dataclass(frozen=True, slots=True)
class Original:
    """A record as stored in the log."""

    key: bytes | None
    value: bytes | None
    headers: Headers = None


Fetch = Callable[[str, int, Sequence[int]], Mapping[int, Original]]
"""Read records of a partition again, for those that left their bytes behind at a shuffle; an offset whose record is
no longer in the log is left out.
"""

LONGEST = 2_000
"""The maximum length of an error text."""

BATCH_DEAD_LETTERS = 65_536
BATCH_BYTES = 64 << 20


@dataclass(slots=True)
class _DeadLetter:
    original: Original
    timestamp: int
    notes: dict[str, str]

    def row(self) -> dict[str, Any]:
        notes = [{"name": name, "value": text.encode("utf-8", "replace")} for name, text in self.notes.items()]
        headers = [*(self.original.headers or ()), *notes]
        return {"key": self.original.key, "value": self.original.value, "timestamp": self.timestamp, "headers": headers}

    @property
    def size(self) -> int:
        return len(self.original.key or b"") + len(self.original.value or b"")


@dataclass(slots=True)
class ReasonCounter:
    """The dead letters of one step for one reason: how many, and the first error with its record."""

    count: int
    error: str
    topic: str
    partition: int
    offset: int


ReasonCounts = dict[tuple[str, str], ReasonCounter]
"""By step and reason."""


def add_reason_counts(reason_counts: ReasonCounts, others: ReasonCounts) -> None:
    """Add the counts of another task."""
    for name, counter in others.items():
        known = reason_counts.setdefault(name, counter)
        if known is not counter:
            known.count += counter.count


class DeadLetters:
    """Collect the dead letters of one task."""

    def __init__(self, input_partitions: list[InputPartition], fetch: Fetch, at_ms: int) -> None:
        self._input_partitions = input_partitions
        self._fetch = fetch
        self.at_ms = at_ms
        self._dead_letters: list[_DeadLetter] = []
        self._left_behind: dict[InputPartition, dict[int, list[_DeadLetter]]] = {}
        self.reasons: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        self.reason_counts: ReasonCounts = {}

    def __len__(self) -> int:
        return len(self._dead_letters)

    def add(self, chunk: Chunk, errors: Mapping[int, str], step: str, reason: Reason) -> None:
        """Set aside records of a chunk by index, each with its error."""
        if not errors:
            return
        self.reasons[reason.value] += len(errors)
        if reason is Reason.LATE:
            self.late[step] += len(errors)
        self._counter(chunk, errors, step, reason)
        for row in sorted(errors):
            input_partition, offset = self._position(chunk, row)
            notes: dict[str, str] = {
                Note.TOPIC: input_partition.topic,
                Note.PARTITION: str(input_partition.partition),
                Note.OFFSET: str(offset),
                Note.STEP: step,
                Note.REASON: reason.value,
                Note.ERROR: errors[row][:LONGEST],
                Note.AT: str(self.at_ms),
            }
            self._keep(chunk, row, input_partition, offset, notes)

    def _counter(self, chunk: Chunk, errors: Mapping[int, str], step: str, reason: Reason) -> None:
        known = self.reason_counts.get((step, reason.value))
        if known is not None:
            known.count += len(errors)
            return
        row = min(errors)
        input_partition, offset = self._position(chunk, row)
        counter = ReasonCounter(
            len(errors), errors[row][:LONGEST], input_partition.topic, input_partition.partition, offset
        )
        self.reason_counts[step, reason.value] = counter

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Return the dead letters in order; records that left their bytes behind are read again, all at once."""
        self._catch_up()
        rows: list[dict[str, Any]] = []
        size = 0
        for dead_letter in self._dead_letters:
            if rows and (len(rows) == BATCH_DEAD_LETTERS or size + dead_letter.size > BATCH_BYTES):
                yield pa.RecordBatch.from_pylist(rows, schema)
                rows, size = [], 0
            rows.append(dead_letter.row())
            size += dead_letter.size
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema)

    def _position(self, chunk: Chunk, row: int) -> tuple[InputPartition, int]:
        input_partition, offset = position_of(chunk, row)
        return (NOWHERE if input_partition == NO_INPUT_PARTITION else self._input_partitions[input_partition]), offset

    def _keep(
        self, chunk: Chunk, row: int, input_partition: InputPartition, offset: int, notes: dict[str, str]
    ) -> None:
        timestamp = int(chunk.timestamp[row])
        if (
            chunk.raw_value is not None
            and chunk.raw_key is not None
            and chunk.input_partition[row] != NO_INPUT_PARTITION
        ):
            headers = None if chunk.headers is None else chunk.headers[row].as_py()
            original = Original(chunk.raw_key[row].as_py(), chunk.raw_value[row].as_py(), headers)
            self._dead_letters.append(_DeadLetter(original, timestamp, notes))
            return
        seen = Original(_bytes(_item(chunk.key, row)), _bytes(_item(chunk.value, row)))
        dead_letter = _DeadLetter(seen, timestamp, notes)
        self._dead_letters.append(dead_letter)
        if input_partition.topic:
            notes[Note.BYTES] = SEEN
            self._left_behind.setdefault(input_partition, {}).setdefault(offset, []).append(dead_letter)

    def _catch_up(self) -> None:
        for input_partition, dead_letters in self._left_behind.items():
            for offset, original in self._fetch(
                input_partition.topic, input_partition.partition, sorted(dead_letters)
            ).items():
                for dead_letter in dead_letters[offset]:
                    dead_letter.original = original
                    del dead_letter.notes[Note.BYTES]
        self._left_behind = {}


def _item(column: Any, row: int) -> Any:
    return column[row] if isinstance(column, list) else column[row].as_py()


def _bytes(value: Any) -> bytes | None:
    """Render a value that exists only inside the query as readable bytes."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return str.encode(value, "utf-8", "replace")
    try:
        # Instants go through `str`: orjson crashes the process on a time zone that raises.
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME)
    except orjson.JSONEncodeError:
        return _render(value).encode("utf-8", "replace")


def _render(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - an object of the user's own may answer anything
        return object.__repr__(value)
