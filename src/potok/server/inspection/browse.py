"""Read the records of a topic by position, time or key, decoded for people."""

from __future__ import annotations

import base64
import heapq
import itertools
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from potok.log.broker import Broker
from potok.log.partitioner import partition_of
from potok.sql.catalog import Source
from potok.statements.records.print_records import shown_keys, shown_values

SHOWN_BYTES = 4_096
"""Longer keys, values and headers are truncated in lists."""

SEARCH_S = 2.0
"""How long one request searches for a key; the next one continues where it stopped."""

PAGE_BYTES = 16 << 20
"""How many bytes of records one page reads, over all partitions; a page with long records has fewer of them."""

_FIRST_STEP = 16
_BLOCK = 50_000

Positions = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Page:
    """Records, the oldest first, and where to go on: the positions after the last one, and of the first one."""

    records: list[dict[str, Any]]
    following: dict[int, int]
    preceding: dict[int, int]
    searched: int = 0
    """How many records were compared with a key."""
    at_end: bool = False


class Browser:
    """The records of one topic.

    Args:
        source: The stream or table over the topic, whose format decodes keys and values.
        whole: Return keys and values completely.
    """

    def __init__(self, broker: Broker, topic: str, source: Source | None, *, whole: bool = False) -> None:
        self._broker, self._topic, self._source, self._whole = broker, topic, source, whole
        self.starts, self.ends = broker.earliest_offsets(topic), broker.end_offsets(topic)

    def at_time(self, time_ms: int, partitions: Positions) -> dict[int, int]:
        """Return the first positions at or after an instant, which the index of the log finds."""
        found = self._broker.offsets_at([(self._topic, part) for part in partitions], time_ms)
        return {part: found[self._topic, part] for part in partitions}

    def forwards(self, positions: Positions, limit: int) -> Page:
        """Return the next records from these positions on, merged by time."""
        share = _share(positions)
        blocks = {part: self._first(part, at, limit, share) for part, at in self._within(positions).items()}
        return self._page(blocks, positions, limit, from_end=False)

    def backwards(self, positions: Positions, limit: int) -> Page:
        """Return the last records before these positions, merged by time."""
        share = _share(positions)
        blocks = {part: self._last(part, at, limit, share) for part, at in self._within(positions).items()}
        return self._page(blocks, positions, limit, from_end=True)

    def of_key(self, key: bytes, positions: Positions, limit: int) -> Page:
        """Return the latest records of a key before these positions, as far as they are found in time."""
        until, searched = time.monotonic() + SEARCH_S, 0
        found: list[dict[str, Any]] = []
        rest = self._within(positions)
        while any(rest[part] > self.starts[part] for part in rest) and len(found) < limit:
            part = max(rest, key=lambda one: rest[one] - self.starts[one])
            begin = max(self.starts[part], rest[part] - _BLOCK)
            batches = [self._having(batch, key) for batch in self._broker.read(self._topic, part, begin, rest[part])]
            searched += rest[part] - begin
            kept = _cut(batches, limit - len(found), from_end=True)
            is_cut = sum(len(batch) for batch in kept) < sum(len(batch) for batch in batches)
            rows = [row for batch in kept for row in self._shown(batch, part)]
            found = [*rows, *found]
            rest[part] = rows[0]["offset"] if is_cut else begin
            if time.monotonic() > until:
                break
        done = all(rest[part] <= self.starts[part] for part in rest)
        return Page(sorted(found, key=_appended), dict(positions), rest, searched, done)

    def partition_of(self, key: bytes) -> int:
        return partition_of(key, len(self.ends))

    def _within(self, positions: Positions) -> dict[int, int]:
        return {part: min(max(at, self.starts[part]), self.ends[part]) for part, at in positions.items()}

    def _first(self, part: int, start: int, limit: int, share: int) -> list[pa.RecordBatch]:
        """Return at least `limit` records if there are so many, or as many as have `share` bytes: compaction leaves
        gaps."""
        found: list[pa.RecordBatch] = []
        reach, end = min(limit, _FIRST_STEP), self.ends[part]
        while start < end and not _is_enough(found, limit, share):
            found += list(self._broker.read(self._topic, part, start, min(end, start + reach)))
            start, reach = start + reach, _next_reach(found, reach, share)
        return found

    def _last(self, part: int, end: int, limit: int, share: int) -> list[pa.RecordBatch]:
        found: list[pa.RecordBatch] = []
        reach, start = min(limit, _FIRST_STEP), self.starts[part]
        while start < end and not _is_enough(found, limit, share):
            begin = max(start, end - reach)
            found = [*self._broker.read(self._topic, part, begin, end), *found]
            end, reach = begin, _next_reach(found, reach, share)
        return found

    def _page(
        self, blocks: Mapping[int, list[pa.RecordBatch]], positions: Positions, limit: int, *, from_end: bool
    ) -> Page:
        runs = {
            part: [row for batch in _cut(batches, limit, from_end=from_end) for row in self._shown(batch, part)]
            for part, batches in blocks.items()
        }
        share = _share(positions)
        short = {part for part, found in blocks.items() if _rows(found) < limit and _bytes(found) >= share}
        last = {(part, runs[part][0 if from_end else -1]["offset"]) for part in short if runs[part]}
        chosen = _merged(list(runs.values()), limit, last, from_end=from_end)
        following, preceding = self._within(positions), self._within(positions)
        for record in chosen:
            part, offset = record["partition"], record["offset"]
            following[part] = max(following[part], offset + 1)
            preceding[part] = min(preceding[part], offset)
        if not from_end:
            preceding = self._within(positions)
        at_end = (
            all(preceding[p] <= self.starts[p] for p in preceding)
            if from_end
            else following == {part: self.ends[part] for part in following}
        )
        return Page(chosen, following, preceding, at_end=at_end)

    def _having(self, batch: pa.RecordBatch, key: bytes) -> pa.RecordBatch:
        return batch.filter(pc.equal(batch.column("key"), pa.scalar(key, batch.column("key").type)))

    def _shown(self, batch: pa.RecordBatch, part: int) -> Iterator[dict[str, Any]]:
        if not batch.num_rows:
            return
        keys, values = shown_keys(batch, self._source), shown_values(batch, self._source)
        for row, key, value in zip(batch.to_pylist(), keys, values, strict=True):
            yield {
                "partition": part,
                "offset": row["offset"],
                "timestamp": row["timestamp"],
                "ingested": row["ingested"],
                **self._part("key", row["key"], key),
                **self._part("value", row["value"], value),
                "headers": [[h["name"], self._text(h["value"])] for h in row["headers"] or ()],
            }

    def _part(self, name: str, data: bytes | None, text: str) -> dict[str, Any]:
        """Return decoded text, or null; with `whole`, the bytes as base64 as well."""
        if data is None:
            return {name: None, f"{name}_bytes": 0}
        shown = {name: self._cut_text(text), f"{name}_bytes": len(data)}
        return {**shown, f"{name}_base64": base64.b64encode(data).decode()} if self._whole else shown

    def _text(self, data: bytes | None) -> str | None:
        if data is None:
            return None
        try:
            return self._cut_text(data.decode())
        except UnicodeDecodeError:
            return self._cut_text(f"0x{data.hex()}")

    def _cut_text(self, text: str) -> str:
        return text if self._whole or len(text) <= SHOWN_BYTES else text[: SHOWN_BYTES - 1] + "…"


def _share(positions: Positions) -> int:
    """Return how many bytes of each partition one page reads."""
    return max(1, PAGE_BYTES // max(1, len(positions)))


def _rows(found: list[pa.RecordBatch]) -> int:
    return sum(len(batch) for batch in found)


def _bytes(found: list[pa.RecordBatch]) -> int:
    return sum(batch.nbytes for batch in found)


def _is_enough(found: list[pa.RecordBatch], limit: int, share: int) -> bool:
    return _rows(found) >= limit or _bytes(found) >= share


def _next_reach(found: list[pa.RecordBatch], reach: int, share: int) -> int:
    """Return how many offsets to read next: four times as many, but with long records not far beyond the share."""
    size, count = _bytes(found), _rows(found)
    if not size:
        return reach * 4
    return min(reach * 4, max(_FIRST_STEP, (share - size) * count // size))


def _cut(batches: list[pa.RecordBatch], limit: int, *, from_end: bool) -> list[pa.RecordBatch]:
    """Return the first or the last rows of several batches, in their order."""
    kept: list[pa.RecordBatch] = []
    for batch in reversed(batches) if from_end else batches:
        if limit <= 0:
            break
        kept.append(batch.slice(max(0, len(batch) - limit)) if from_end else batch.slice(0, limit))
        limit -= len(batch)
    return kept[::-1] if from_end else kept


def _merged(
    runs: Sequence[list[dict[str, Any]]], limit: int, last: Collection[tuple[int, int]], *, from_end: bool
) -> list[dict[str, Any]]:
    """Return the first or the last records of all runs in the order in which they were appended. Records of one run
    keep their order, so that a page has no gaps. It ends at one of the `last` positions, after which its partition has
    records that were not read."""
    if not from_end:
        return list(_until(itertools.islice(heapq.merge(*runs, key=_appended), limit), last))
    merged = heapq.merge(*(reversed(run) for run in runs), key=_appended, reverse=True)
    return list(_until(itertools.islice(merged, limit), last))[::-1]


def _until(records: Iterator[dict[str, Any]], last: Collection[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    for record in records:
        yield record
        if (record["partition"], record["offset"]) in last:
            return


def _appended(record: dict[str, Any]) -> tuple[int, int]:
    return record["ingested"] or 0, record["timestamp"] or 0
