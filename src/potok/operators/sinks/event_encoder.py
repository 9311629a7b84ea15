"""Encode the values of a sink as events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Protocol
from urllib.parse import quote

import pyarrow as pa

from potok.events.event_type import EventType
from potok.events.personal.key_store import KeyStore
from potok.events.personal.records import seal_records
from potok.events.rows import encode_rows
from potok.events.write import EventWriting, event_id, write_events
from potok.operators.core.chunk import Chunk, headers_of, position_of
from potok.operators.core.dead_letters import NOWHERE, InputPartition
from potok.records.formats.format import Encoded
from potok.records.rows import rows_of


class EventIds:
    """Give events their ids. Records of one input record and one key are numbered in the order they arrive, so ids do
    not depend on batches, tasks or shards.
    """

    def __init__(self, query: str, sink: str, input_partitions: Sequence[InputPartition]) -> None:
        self._query, self._sink, self._input_partitions = query, sink, input_partitions
        self._seen: Counter[tuple[object, ...]] = Counter()

    def identify(self, chunk: Chunk, keys: pa.Array, row: int, data: bytes) -> tuple[str, str]:
        """Return the id of an event and its sequence."""
        number, offset = position_of(chunk, row)
        topic_partition = self._input_partitions[number] if number >= 0 else NOWHERE
        named: tuple[object, ...] = (topic_partition.topic, topic_partition.partition, offset, keys[row].as_py())
        if topic_partition is NOWHERE:
            named = (*named, int(chunk.timestamp[row]), data)
        index = self._seen[named]
        self._seen[named] += 1
        sequence = "" if topic_partition is NOWHERE else f"{offset:020d}-{index:06d}"
        return event_id(self._query, self._sink, *named, index), sequence


class Encoder(Protocol):
    """Encodes the values of a sink as events."""

    def encode(self, chunk: Chunk, keys: pa.Array) -> tuple[Encoded, pa.Array | None]:
        """Return the values and the headers of the records."""


class EventEncoder:
    """Encode the values of declared classes."""

    def __init__(
        self,
        how: EventWriting,
        query: str,
        input_partitions: Sequence[InputPartition],
        keys: KeyStore | None = None,
    ) -> None:
        self._how, self._keys = how, keys
        self._ids = EventIds(query, how.sink, input_partitions)

    def encode(self, chunk: Chunk, keys: pa.Array) -> tuple[Encoded, pa.Array | None]:
        """Return the values and the headers of the records."""
        headers = [None] * len(chunk) if chunk.headers is None else chunk.headers.to_pylist()
        identify = partial(self._ids.identify, chunk, keys)
        made = write_events(chunk.value, headers, chunk.timestamp.tolist(), self._how, identify, self._keys)
        return Encoded(made.values, made.errors), headers_of([own or None for own in made.headers])


class EventRowEncoder:
    """Encode rows of SQL whose columns are the attributes and the data of events."""

    def __init__(self, query: str, sink: str, input_partitions: Sequence[InputPartition]) -> None:
        self._source = f"/potok/{quote(query)}"
        self._ids = EventIds(query, sink, input_partitions)

    def encode(self, chunk: Chunk, keys: pa.Array) -> tuple[Encoded, pa.Array | None]:
        """Return the values and the headers of the records."""
        headers = [None] * len(chunk) if chunk.headers is None else chunk.headers.to_pylist()

        def identify(row: int, data: bytes) -> str:
            return self._ids.identify(chunk, keys, row, data)[0]

        made = encode_rows(chunk.value, headers, chunk.timestamp.tolist(), self._source, identify)
        return Encoded(made.values, made.errors), headers_of([own or None for own in made.headers])


class SealingEncoder:
    """Encrypt the personal fields of values that are events already."""

    def __init__(self, types: Sequence[EventType], topic: str, keys: KeyStore) -> None:
        self._types, self._topic, self._keys = types, topic, keys

    def encode(self, chunk: Chunk, keys: pa.Array) -> tuple[Encoded, pa.Array | None]:
        """Return the values and the headers of the records."""
        headers = [None] * len(chunk) if chunk.headers is None else chunk.headers.to_pylist()
        values, written = seal_records(rows_of(chunk.value), headers, self._types, self._topic, self._keys)
        return Encoded(pa.array(values, pa.binary()), {}), headers_of([own or None for own in written])
