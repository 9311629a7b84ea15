"""Read a topic as a stream of Structured Streaming."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from potok.spark.data_source.options import TopicOptions
from potok.spark.data_source.topic_source import RecordsGoneError, TopicRecords, from_time, resolved, split

StreamOffsets = dict[str, int]
"""Offsets by partition, as Spark writes them to its checkpoint."""


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the records of a topic as they are appended, each once for a checkpoint."""

    def __init__(self, options: TopicOptions, schema: StructType) -> None:
        self._records, self._options = TopicRecords(options, schema), options
        self._last: dict[int, int] | None = None

    def initialOffset(self) -> StreamOffsets:
        broker, topic = self._records.broker, self._options.topic
        if self._options.starting_timestamp is not None:
            return _to_json(from_time(broker, topic, self._options.starting_timestamp))
        first = broker.earliest_offsets(topic)
        return _to_json(resolved(broker, topic, self._options.starting_offsets, first))

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: StreamOffsets, limit: ReadLimit) -> StreamOffsets:
        ends = self._last or self._records.broker.end_offsets(self._options.topic)
        if not isinstance(limit, ReadMaxRows):
            return _to_json(ends)
        starts = {partition: start.get(str(partition), 0) for partition in ends}
        return _to_json(_limited(starts, ends, limit.max_rows))

    def reportLatestOffset(self) -> StreamOffsets:
        return _to_json(self._records.broker.end_offsets(self._options.topic))

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._records.broker.end_offsets(self._options.topic)

    def partitions(self, start: StreamOffsets, end: StreamOffsets) -> Sequence[InputPartition]:
        topic = self._options.topic
        first = self._records.broker.earliest_offsets(topic)
        ranges = {int(p): (start.get(p, first.get(int(p), 0)), last) for p, last in end.items()}
        for partition, (begin, last) in ranges.items():
            if begin < last and begin < first.get(partition, 0):
                raise RecordsGoneError(topic, partition, begin, first[partition], last)
        return list(split(ranges, self._options.records_per_partition))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._records.read(partition)


def _to_json(offsets: Mapping[int, int]) -> StreamOffsets:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}


def _limited(starts: Mapping[int, int], ends: Mapping[int, int], most: int) -> dict[int, int]:
    """Return ends with at most this many offsets, in proportion to what each partition has, and one at least."""
    there = {partition: max(end - starts[partition], 0) for partition, end in ends.items()}
    total = sum(there.values())
    if total <= most:
        return dict(ends)
    return {p: starts[p] + min(count, max(most * count // total, 1)) for p, count in there.items()}
