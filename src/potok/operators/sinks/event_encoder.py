"""Encode the values of a sink as events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from potok.events.personal.key_store import KeyStore
from potok.events.write import EventWriting, event_id, write_events
from potok.operators.core.chunk import Chunk, headers_of, position_of
from potok.operators.core.dead_letters import NOWHERE, InputPartition
from potok.records.formats.format import Encoded


class EventEncoder:
    """Give events their ids. Records of one input record and one key are numbered in the order they arrive, so ids do
    not depend on batches, tasks or shards.
    """

    def __init__(
        self,
        how: EventWriting,
        query: str,
        input_partitions: Sequence[InputPartition],
        keys: KeyStore | None = None,
    ) -> None:
        self._keys = keys
        self._how, self._query, self._input_partitions = how, query, input_partitions
        self._seen: Counter[tuple[object, ...]] = Counter()

    def encode(self, chunk: Chunk, keys: pa.Array) -> tuple[Encoded, pa.Array | None]:
        """Return the values and the headers of the records."""
        headers = [None] * len(chunk) if chunk.headers is None else chunk.headers.to_pylist()

        def identify(row: int, data: bytes) -> tuple[str, str]:
            number, offset = position_of(chunk, row)
            place = self._input_partitions[number] if number >= 0 else NOWHERE
            named: tuple[object, ...] = (place.topic, place.partition, offset, keys[row].as_py())
            if place is NOWHERE:
                named = (*named, int(chunk.timestamp[row]), data)
            index = self._seen[named]
            self._seen[named] += 1
            sequence = "" if place is NOWHERE else f"{offset:020d}-{index:06d}"
            return event_id(self._query, self._how.sink, *named, index), sequence

        made = write_events(chunk.value, headers, chunk.timestamp.tolist(), self._how, identify, self._keys)
        return Encoded(made.values, made.errors), headers_of([own or None for own in made.headers])
