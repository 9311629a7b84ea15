"""Rows of one side of a join as columns, sorted by the hashes of their keys, and matching two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from potok.checksum import crc32
from potok.log.broker import HEADERS
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, Ints, from_ipc, to_ipc
from potok.operators.core.dead_letters import InputPartition

Numbers = npt.NDArray[np.intp]
Hashes = npt.NDArray[np.uint32]

_PARTITION_BITS = 24


class Origins:
    """Topic partitions under a number that is valid beyond the batch: the topic by its checksum, and the partition."""

    def __init__(self, input_partitions: Sequence[InputPartition]) -> None:
        codes = [
            crc32(input_partition.topic.encode()) << _PARTITION_BITS | input_partition.partition
            for input_partition in input_partitions
        ]
        self._codes = np.array([*codes, NO_INPUT_PARTITION], np.int64)
        self._order = np.argsort(self._codes)
        self._sorted = self._codes[self._order]

    def of(self, input_partitions: Ints) -> Ints:
        # The last code means no input partition, and -1 is the index of the last.
        return self._codes[input_partitions]

    def input_partitions(self, origins: Ints) -> Ints:
        """Return the input partitions of this batch; a partition that is no longer read has none."""
        indexes = np.minimum(np.searchsorted(self._sorted, origins), len(self._sorted) - 1)
        input_partitions = self._order[indexes]
        known = (self._sorted[indexes] == origins) & (input_partitions < len(self._codes) - 1)
        return np.where(known, input_partitions, NO_INPUT_PARTITION)


@dataclass(slots=True)
class Rows:
    """Records that wait for others. Keys are canonical bytes; dynamic values are pickles; headers are present if some
    record has any.
    """

    hashes: Hashes
    times: Ints
    stream_times: Ints
    origins: Ints
    offsets: Ints
    keys: pa.Array
    values: pa.Array
    headers: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: Numbers) -> Rows:
        indices = pa.array(rows)
        return Rows(
            self.hashes[rows],
            self.times[rows],
            self.stream_times[rows],
            self.origins[rows],
            self.offsets[rows],
            self.keys.take(indices),
            self.values.take(indices),
            None if self.headers is None else self.headers.take(indices),
        )

    def where(self, mask: npt.NDArray[np.bool_]) -> Rows:
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def slice(self, start: int, count: int) -> Rows:
        end = start + count
        return Rows(
            self.hashes[start:end],
            self.times[start:end],
            self.stream_times[start:end],
            self.origins[start:end],
            self.offsets[start:end],
            self.keys.slice(start, count),
            self.values.slice(start, count),
            None if self.headers is None else self.headers.slice(start, count),
        )

    def payload(self) -> bytes:
        """Serialize everything but the hashes and the times, which are stored apart for searches."""
        columns = {
            "key": self.keys,
            "value": self.values,
            "stream_time": pa.array(self.stream_times),
            "origin": pa.array(self.origins),
            "offset": pa.array(self.offsets),
        }
        if self.headers is not None and self.headers.null_count < len(self):
            columns["headers"] = self.headers
        return to_ipc(pa.RecordBatch.from_pydict(columns))


def rows_of_payload(hashes: Hashes, times: Ints, payload: bytes) -> Rows:
    batch = from_ipc(payload)
    stream_times, origins, offsets = (batch.column(name).to_numpy() for name in ("stream_time", "origin", "offset"))
    headers = batch.column("headers") if "headers" in batch.schema.names else None
    return Rows(hashes, times, stream_times, origins, offsets, batch.column("key"), batch.column("value"), headers)


def rows_of_chunk(chunk: Chunk, values: pa.Array, origins: Origins, *, headers: bool = False) -> Rows:
    """Return the records of a chunk, whose keys are bytes, with their headers if requested; those of one key keep
    their order.
    """
    assert isinstance(chunk.key, pa.Array)
    hashes = hashes_of(chunk.key)
    positions = origins.of(chunk.input_partition), chunk.offset
    given = chunk.headers if headers else None
    return in_hash_order(Rows(hashes, chunk.timestamp, chunk.stream_time, *positions, chunk.key, values, given))


def in_hash_order(rows: Rows) -> Rows:
    return rows.take(np.argsort(rows.hashes, kind="stable"))


def hashes_of(keys: pa.Array) -> Hashes:
    return np.fromiter(map(crc32, keys.fill_null(b"").to_pylist()), np.uint32, len(keys))


def concat_rows(parts: Sequence[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.stream_times for part in parts]),
        np.concatenate([part.origins for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        pa.concat_arrays([part.keys for part in parts]),
        pa.concat_arrays([part.values for part in parts]),
        _concat_headers(parts),
    )


def _concat_headers(parts: Sequence[Rows]) -> pa.Array | None:
    if all(part.headers is None for part in parts):
        return None
    return pa.concat_arrays([headers_or_none(part) for part in parts])


def headers_or_none(rows: Rows) -> pa.Array:
    return pa.nulls(len(rows), HEADERS) if rows.headers is None else rows.headers


AT_ONCE = 4_000_000
"""How many pairs of one key are examined together: a very frequent key must not fill the memory."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A search for partners: sorted hashes, and for each the earliest and the latest time of a partner."""

    hashes: Hashes
    least: Ints
    greatest: Ints

    def match(self, hashes: Hashes, times: Ints) -> tuple[Numbers, Numbers]:
        """Return pairs of row numbers with equal hashes and times in reach; both sides are in hash order."""
        none = np.empty(0, np.intp)
        if not len(hashes) or not len(self.hashes):
            return none, none
        first = np.searchsorted(hashes, self.hashes)
        found = np.flatnonzero(hashes[np.minimum(first, len(hashes) - 1)] == self.hashes)
        if not len(found):
            return none, none
        first = first[found]
        counts = np.searchsorted(hashes, self.hashes[found], "right") - first
        edges = np.searchsorted(np.cumsum(counts), np.arange(AT_ONCE, counts.sum(), AT_ONCE))
        cuts = np.unique(np.concatenate([[0], edges, [len(found)]])).astype(np.intp).tolist()
        slabs = [slice(begin, end) for begin, end in pairwise(cuts)]
        pairs = [self._near(found[slab], first[slab], counts[slab], times) for slab in slabs]
        return np.concatenate([here for here, _ in pairs]), np.concatenate([there for _, there in pairs])

    def _near(self, found: Numbers, first: Numbers, counts: Numbers, times: Ints) -> tuple[Numbers, Numbers]:
        """Return, of all pairs with equal hashes, those in reach; row `found[i]` has `counts[i]` partners from
        `first[i]` on."""
        here = np.repeat(found, counts)
        there = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(len(here))
        near = (times[there] >= self.least[here]) & (times[there] <= self.greatest[here])
        return here[near], there[near]


def equal_keys(left: Rows, right: Rows) -> npt.NDArray[np.bool_]:
    """Compare keys row by row; different keys may have one hash."""
    return np.asarray(pc.equal(left.keys, right.keys).to_numpy(zero_copy_only=False), np.bool_)
