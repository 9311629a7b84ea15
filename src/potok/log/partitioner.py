"""Choose the partition of a record like Kafka's default partitioner, so that topics are co-partitioned with Kafka's."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF

_VECTOR_LENGTH = 256
"""Longer keys are hashed one by one: they are rare, and would add steps to the hashing of all others."""

_CHUNK = 16_384
_STICKY = 256
"""How many consecutive records without a key go to one partition."""

Hashes = npt.NDArray[np.uint32]

_spread = itertools.count(random.randrange(1 << 16))


def murmur2(key: bytes) -> int:
    """Kafka's murmur2, as a signed 32-bit number like in Java."""
    mixed = (_SEED ^ len(key)) & _MASK
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        mixed = mixed * _MULTIPLIER & _MASK ^ word
    if whole < len(key):
        mixed = (mixed ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _MASK
    mixed = (mixed ^ mixed >> 13) * _MULTIPLIER & _MASK
    mixed ^= mixed >> 15
    return mixed - (1 << 32) if mixed >> 31 else mixed


def partition_of(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def partitions_of(keys: pa.Array, partitions: int) -> npt.NDArray[np.int32]:
    """Return the partition of each key; records without a key are distributed in runs."""
    chosen = ((_murmur2_many(keys) & np.uint32(0x7FFFFFFF)) % np.uint32(partitions)).astype(np.int32)
    if keys.null_count:
        missing = keys.is_null().to_numpy(zero_copy_only=False)
        runs = np.arange(keys.null_count) // _STICKY
        first = next(_spread)
        for _ in range(int(runs[-1])):
            next(_spread)
        chosen[missing] = (runs + first) % partitions
    return chosen


def split(batch: pa.RecordBatch, partitions: int) -> list[tuple[int, pa.RecordBatch]]:
    """Split a batch by the partition of its column `key`, each part in the order of the batch."""
    if len(batch) == 0:
        return []
    if partitions == 1:
        return [(0, batch)]
    chosen = partitions_of(batch.column("key"), partitions)
    if len(batch) == 1:
        return [(int(chosen[0]), batch)]
    narrow = chosen.astype(np.uint16) if partitions <= 1 << 16 else chosen
    counts = np.bincount(chosen, minlength=partitions)
    if counts.max() == len(batch):
        return [(int(chosen[0]), batch)]
    ordered = batch.take(pa.array(np.argsort(narrow, kind="stable")))
    starts = np.cumsum(counts) - counts
    return [
        (int(partition), ordered.slice(int(starts[partition]), int(counts[partition])))
        for partition in np.flatnonzero(counts)
    ]


def _murmur2_many(keys: pa.Array) -> Hashes:
    """murmur2 of each key as unsigned numbers; the values for null keys are undefined."""
    _, offsets_buffer, data_buffer = keys.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, len(keys) + 1, keys.offset * 4)
    # Four more bytes, so that the last word of the last key can be read.
    data = np.zeros(int(offsets[-1] - offsets[0]) + 4, np.uint8)
    if len(data) > 4:
        data[:-4] = np.frombuffer(data_buffer, np.uint8, len(data) - 4, int(offsets[0]))
    starts = (offsets[:-1] - offsets[0]).astype(np.intp)
    lengths = np.diff(offsets)
    hashes = np.empty(len(keys), np.uint32)
    for at in range(0, len(keys), _CHUNK):
        part = slice(at, at + _CHUNK)
        hashes[part] = _hash_chunk(data, starts[part], lengths[part])
    return hashes


def _hash_chunk(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.intp], lengths: npt.NDArray[np.int32]) -> Hashes:
    """One step for each word of the longest key, over all keys of that length."""
    words: Any = np.ndarray((max(len(data) - 3, 0),), np.dtype("<u4"), data, strides=(1,))
    multiplier = np.uint32(_MULTIPLIER)
    hashes = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    long = np.flatnonzero(lengths > _VECTOR_LENGTH)
    whole = np.where(lengths > _VECTOR_LENGTH, 0, lengths >> 2)
    least = int(whole.min())
    for step in range(int(whole.max())):
        rows: Any = slice(None) if step < least else np.flatnonzero(whole > step)
        word = words[starts[rows] + 4 * step] * multiplier
        word = (word ^ (word >> np.uint32(24))) * multiplier
        hashes[rows] = (hashes[rows] * multiplier) ^ word
    tail = np.flatnonzero(lengths & 3)
    if len(tail):
        rest = (lengths[tail] & 3).astype(np.uint32)
        last = words[starts[tail] + (lengths[tail] & ~3)] & ((np.uint32(1) << (rest * np.uint32(8))) - np.uint32(1))
        hashes[tail] = (hashes[tail] ^ last) * multiplier
    hashes = (hashes ^ (hashes >> np.uint32(13))) * multiplier
    hashes ^= hashes >> np.uint32(15)
    for row in long:
        begin = int(starts[row])
        hashes[row] = murmur2(data[begin : begin + int(lengths[row])].tobytes()) & _MASK
    return hashes
